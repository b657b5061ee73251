"""Work in copies of a process that has imported everything: to start one takes longer than to run a dozen seeds."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import TextIO

_SECONDS = 600  # by the machine's clock, for each piece of work: what takes longer hangs


class Forked:
    """A copy of this process, and the text that it answers with."""

    def __init__(self, work: Callable[[], str]) -> None:
        mine, its = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            os.close(mine)
            _answer(work, its)
        os.close(its)
        self._answer = os.fdopen(mine, encoding="utf-8")

    def answer(self) -> str:
        """Wait for it. Errors: RuntimeError where it failed, or took too long; why it failed it has printed."""
        with self._answer as answer:
            text = answer.read()
        _, status = os.waitpid(self._pid, 0)
        if status:
            raise RuntimeError(f"a process of the simulator ended with status {status}")
        return text


def next_piece() -> None:
    """Begin a piece of work, in a copy: it has as long as the first."""
    if signal.alarm(0):
        signal.alarm(_SECONDS)


def _answer(work: Callable[[], str], its: int) -> None:
    """The copy's whole life."""
    signal.alarm(_SECONDS)
    status = 1
    try:
        with os.fdopen(its, "w", encoding="utf-8") as answer:
            answer.write(work())
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def serve(orders: Iterable[str], answers: TextIO, run: Callable[[list[str]], str]) -> None:
    """Run the arguments of each line, a list as JSON, in a copy of its own; a line of JSON is its answer, null if none.

    `run`: what a copy does with arguments, and its answer.
    """
    for line in orders:
        try:
            answer: str | None = Forked(lambda arguments=json.loads(line): run(arguments)).answer()  # type: ignore[misc]
        except RuntimeError:
            answer = None
        print(json.dumps(answer), file=answers, flush=True)
