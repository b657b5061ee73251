"""Writes the ZOZO logs line by line, as growing files.

    .venv/bin/python -m demo.feeder --to .run/zozo/logs

A ledger beside the folder of logs says when each line was written, to measure from. Fed into the same folder again,
every line comes once more, and nothing is joined twice.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from .script import SEED, STREAMS, Script, script

SECONDS = 75.0
TICK = 0.02


@dataclass(frozen=True)
class Entry:
    """One line of the ledger: `event_id` is empty for a broken line; written_at in microseconds since 1970."""

    stream: str
    event_id: str
    kind: str
    written_at: int


class Feeder:
    """Feeds one script. `entries` grows as it goes on, and may be read by another thread."""

    def __init__(
        self, plan: Script, logs: Path, ledger: Path,
        *, clock: Callable[[], float] = time.time, sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        self.plan, self.logs, self.ledger = plan, logs, ledger
        self.entries: list[Entry] = []
        self._clock, self._sleep = clock, sleep
        self._open: dict[Path, BinaryIO] = {}
        self._rotated = False

    @property
    def done(self) -> bool:
        """Whether all is written."""
        return len(self.entries) == len(self.plan.lines)

    def feed(self, ready: Callable[[], bool] = lambda: True, stop: Callable[[], bool] = lambda: False) -> None:
        """Write the first lines at once, and the others, each at its time, once all is ready; or until stopped."""
        for stream in STREAMS:
            (self.logs / stream).mkdir(parents=True, exist_ok=True)
        try:
            with self.ledger.open("a", newline="", encoding="utf-8") as handle:
                book, begun = csv.writer(handle), None
                while not self.done and not stop():
                    if begun is None and self.entries and ready():
                        begun = self._clock()
                    self._write_due(0.0 if begun is None else self._clock() - begun, book.writerow)
                    handle.flush()
                    self._tick()
                    self._sleep(TICK)
        finally:
            self._close()

    def _tick(self) -> None:
        """Nothing more to do: what is written is there."""

    def _close(self) -> None:
        for log in self._open.values():
            log.close()

    def _write_due(self, elapsed: float, note: Callable[[tuple[object, ...]], object]) -> None:
        for line in self.plan.lines[len(self.entries) :]:
            if line.at >= elapsed:
                return
            if line.at >= self.plan.rotate_at and not self._rotated:
                self._rotate(self.logs.joinpath(*self.plan.rotated))
            # Before writing: a reader may be quicker than this process's next look at the clock.
            entry = Entry(line.stream, line.event_id, line.kind, int(self._clock() * 1e6))
            self._file(self.logs / line.stream / line.file).write(line.data + b"\n")
            note((entry.stream, entry.event_id, entry.kind, entry.written_at))
            self.entries.append(entry)

    def _file(self, path: Path) -> BinaryIO:
        if path not in self._open:
            self._open[path] = path.open("ab", buffering=0)
        return self._open[path]

    def _rotate(self, path: Path) -> None:
        """Rename as logrotate does; the next line goes to a new file of the old name."""
        self._rotated = True
        if path in self._open:
            self._open.pop(path).close()
            number = 1 + sum(1 for _ in path.parent.glob(f"{path.name}.*"))
            path.rename(path.with_name(f"{path.name}.{number}"))


def main(arguments: list[str]) -> int:
    """Feed, and say what was fed."""
    parser = argparse.ArgumentParser(prog="python -m demo.feeder", description="Write the ZOZO logs as growing files")
    parser.add_argument("--to", type=Path, required=True, help="folder of logs; gets impressions/ and clicks/")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long to take (default %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="what goes wrong, and where (default %(default)s)")
    chosen = parser.parse_args(arguments)
    ledger = chosen.to.absolute().parent / "ledger.csv"
    feeder = Feeder(script(chosen.seconds, chosen.seed), chosen.to, ledger)
    lines = len(feeder.plan.lines)
    print(f"feeding {lines:,} lines in {chosen.seconds:g} s, {lines / chosen.seconds:,.0f}/s, to {chosen.to}")
    print(f"when each was written stands in {ledger}")
    try:
        feeder.feed()
    except OSError as error:
        print(f"clickjoin: {chosen.to}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"clickjoin: stopped after {len(feeder.entries):,} lines", file=sys.stderr)
        return 130
    print(f"fed {len(feeder.entries):,} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
