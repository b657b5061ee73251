"""From written to readable: when each event's output row could first be read, from the table's own log.

A row is readable once the commit that adds its file is in `_delta_log`. So the moment is the modification time of that
commit's JSON file: Delta writes it under another name and renames it, which takes a millisecond. The `add` actions of
a commit name the files that it adds, and the files name the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow.parquet as pq


class Readable:
    """Follows a local Delta table. `moments`: event id to microseconds since 1970; the first commit of an id counts.

    `column`: what a row goes by, where that is no event id.
    """

    def __init__(self, table: Path, column: str = "event_id") -> None:
        self.moments: dict[str, int] = {}
        self.rows = 0
        self._table, self._column = table, column
        self._next = 0

    def update(self) -> None:
        """Take up the commits that have come since the last call."""
        while (commit := self._table / f"_delta_log/{self._next:020}.json").exists():
            moment = commit.stat().st_mtime_ns // 1000
            for line in commit.read_text(encoding="utf-8").splitlines():
                added = json.loads(line).get("add")
                # Compaction moves rows that were readable before: its files do not change data.
                if added and added["dataChange"]:
                    self._note(self._table / unquote(added["path"]), moment)
            self._next += 1

    def _note(self, file: Path, moment: int) -> None:
        for name in pq.ParquetFile(file).read([self._column])[self._column].to_pylist():
            self.rows += 1
            self.moments.setdefault(name, moment)


@dataclass(frozen=True)
class Spread:
    """How long it took, in seconds: so much or less in 50, 90 and 99 of 100 cases, and at most."""

    count: int
    p50: float
    p90: float
    p99: float
    max: float


def spread(micros: Iterable[int | float]) -> Spread | None:
    """Percentiles of durations in microseconds, each one that was really seen; None where there is none."""
    values = np.fromiter(micros, dtype=float) / 1e6
    if not len(values):
        return None
    p50, p90, p99 = np.quantile(values, [0.5, 0.9, 0.99], method="higher").tolist()
    return Spread(len(values), round(p50, 3), round(p90, 3), round(p99, 3), round(float(values.max()), 3))
