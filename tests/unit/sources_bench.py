"""A folder of logs, a source on it, and what a caller does: keeps positions as JSON, reads what was planned."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from clickjoin.config import Files
from clickjoin.kernel.chunk import spread
from clickjoin.kernel.file_bytes import BLOCK
from clickjoin.kernel.read_lines import read_chunk
from clickjoin.model.ids import RecordSpec
from clickjoin.model.split import Budget, SourceOffset, SourcePlan, Split
from clickjoin.sources.files.source import FilesSource

PLENTY = Budget(1_000_000, 1 << 30)
BASE = 1_574_562_822_000_000


def spec(**fields: Any) -> RecordSpec:
    """How records of these tests are laid out; an id of one column may be given as its name."""
    fields |= {name: (fields[name],) for name in ("event_id", "primary_id") if isinstance(fields.get(name), str)}
    known = {
        "event_id": ("id",), "event_time": "embedded", "primary_id": (), "primary_time": None,
        "earliest_micros": 946_684_800_000_000, "latest_micros": BASE + 10**12, "max_record": 16_000_000,
    }  # fmt: skip
    return RecordSpec(**{**known, **fields})


def event(number: int, **more: Any) -> bytes:
    """One good line."""
    return json.dumps({"id": f"h:1:{BASE + number}", **more}).encode() + b"\n"


def events(low: int, high: int) -> bytes:
    """Good lines, one for each number."""
    return b"".join(event(number) for number in range(low, high))


class Feed:
    """A source over `folder / pattern`, its clock `ahead` seconds after the machine's."""

    def __init__(self, folder: Path, pattern: str = "*.jsonl*", **fields: Any) -> None:
        self.folder, self.ahead = folder, 0.0
        self.source = FilesSource(
            Files(kind="files", path=f"{folder}/{pattern}", **fields), now=lambda: time.time() + self.ahead
        )
        self.positions: dict[str, SourceOffset] = {}

    def plan(self, budget: Budget = PLENTY) -> SourcePlan:
        """Plan, and keep the positions as a caller would: through JSON."""
        plan = self.source.plan(self.positions, budget)
        for position in plan.offsets:
            self.positions[position.partition] = SourceOffset(**json.loads(json.dumps(asdict(position))))
        return plan

    def give_back(self, lost: Sequence[Split]) -> None:
        """What the journal does with lost splits."""
        for split in lost:
            self.positions[split.partition] = self.source.rewind(self.positions[split.partition], split)

    def read(
        self, splits: Sequence[Split], *, tasks: int = 1, size: int = BLOCK, **fields: Any
    ) -> list[dict[str, Any]]:
        """Records of splits, as a Spark worker would make them."""
        chunks, sizes = self.source.chunks(splits), list(map(self.source.size, splits))
        work = spread(chunks, sizes, tasks)
        rows: list[dict[str, Any]] = []
        for task in work:
            for chunk in task:
                for batch in read_chunk(chunk, spec(**fields), size):
                    rows.extend(batch.to_pylist())
        return sorted(rows, key=lambda row: (row["path"], row["offset"]))

    def step(self, budget: Budget = PLENTY, **fields: Any) -> list[int]:
        """Plan and read; the numbers of the good events, in the files' order."""
        return numbers(self.read(self.plan(budget).splits, **fields))

    def kinds(self) -> list[str]:
        """Kinds of the problems that a plan tells of."""
        return [problem.kind for problem in self.plan().problems]


def numbers(rows: Sequence[dict[str, Any]]) -> list[int]:
    """Which events the good rows are."""
    return [int(row["event_id"].rsplit(":", 1)[1]) - BASE for row in rows if row["reason"] is None]


def age(path: Path, seconds: float) -> None:
    """Make a file look as if it was last written some time ago."""
    past = time.time() - seconds
    os.utime(path, (past, past))


def append(path: Path, data: bytes) -> None:
    """Let a file grow."""
    with path.open("ab") as file:
        file.write(data)
