"""What is always replaced in the simulator's process, and protections that can be taken away to see them missed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any


class _Job:
    def __init__(self, pool: _Pool, work: Callable[[], Any]) -> None:
        self._pool, self._work, self._done, self._value = pool, work, False, None

    def run(self) -> None:
        if not self._done:
            self._value, self._done = self._work(), True

    def result(self) -> Any:
        self._pool.finish()
        return self._value


class _Pool:
    """Threads' work, one after the other, in an order drawn."""

    def __init__(self, max_workers: int = 1) -> None:
        self._jobs: list[_Job] = []

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Callable[..., Any], *args: Any) -> _Job:
        self._jobs.append(_Job(self, lambda: work(*args)))
        return self._jobs[-1]

    def finish(self) -> None:
        jobs = list(self._jobs)
        random.shuffle(jobs)
        for job in jobs:
            job.run()


def always() -> None:
    """What no schedule can do without."""
    from clickjoin.event_store import landing

    landing.ThreadPoolExecutor = _Pool  # type: ignore[misc,assignment]


def apply(name: str) -> None:
    """Take a protection away."""
    _BREAKS[name]()


def _token() -> None:
    """Publish whatever the look-up found, whoever owns the claim."""
    from clickjoin.registry import claim

    screen = claim.F.when

    def when(condition: Any, value: Any) -> Any:
        return screen(condition, "mine" if value == "repeat" else value)

    claim.F.when = when


_BREAKS: dict[str, Callable[[], None]] = {"token": _token}
