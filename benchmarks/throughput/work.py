"""The input that all contenders read, and the check of what each made of it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from clickjoin.generate import Traffic, generate

PARTS = 8
DAY = 86_400.0
STREAMS = ("queries", "clicks")
_DEALT = "-dealt"
HELD = "held-"  # before the ids of what an output held already


@dataclass(frozen=True)
class Work:
    """Logs of a day in `folder`, each stream in parts that follow one another in event time."""

    folder: Path
    truth: dict[str, Any]

    @property
    def events(self) -> int:
        """Lines of both streams."""
        return int(sum(self.truth[stream]["lines"] for stream in STREAMS))

    def glob(self, stream: str, *, dealt: bool = False) -> str:
        """All parts of a stream; or the same lines as `deal` has laid them out."""
        return f"{self.folder}/{stream}{_DEALT * dealt}/*.jsonl"

    def deal(self) -> None:
        """Lay the lines out as topics hold them: each file spans the day, one line in so many of each part."""
        for stream in STREAMS:
            (self.folder / f"{stream}{_DEALT}").mkdir()
            parts = [(self.folder / stream / f"{part}.jsonl").read_bytes().splitlines(True) for part in range(PARTS)]
            for number in range(PARTS):
                file = self.folder / f"{stream}{_DEALT}/{number}.jsonl"
                file.write_bytes(b"".join(line for lines in parts for line in lines[number::PARTS]))
                os.utime(file, (1_000_000_000 + DAY,) * 2)


@dataclass(frozen=True)
class Seen:
    """What a contender made: rows, ids more than once, joinable clicks that are missing, pairs that are not true."""

    rows: int
    doubled: int
    lost: int
    wrong: int

    @property
    def exactly_once(self) -> bool:
        """Whether each joinable click is there once, with its own query, and nothing else."""
        return not (self.doubled or self.lost or self.wrong)


def make(folder: Path, clicks: int, queries: int, seed: int) -> Work:
    """Write the logs. Some lines come twice; none is broken or late or lacks its query: peers do not know such."""
    generate(folder, Traffic(clicks=clicks, queries=queries, duration=DAY, files=1, seed=seed))
    for number, stream in enumerate(STREAMS):
        whole = next((folder / stream).glob("*.jsonl"))
        lines = whole.read_bytes().splitlines(keepends=True)
        whole.unlink()
        for part in range(PARTS):
            file = folder / stream / f"{part}.jsonl"
            file.write_bytes(b"".join(lines[len(lines) * part // PARTS : len(lines) * (part + 1) // PARTS]))
            os.utime(file, (1_000_000_000 + DAY / PARTS * part + number,) * 2)  # each when its part of the day was over
    return Work(folder, json.loads((folder / "truth.json").read_text(encoding="utf-8")))


def check(work: Work, table: str) -> Seen:
    """Hold an output with columns event_id and primary_id against the truth: a Delta table or a Parquet file."""
    columns = ["event_id", "primary_id"]
    made = (
        pq.read_table(table, columns=columns)
        if table.endswith(".parquet")
        else DeltaTable(table).to_pyarrow_table(columns=columns)
    )
    made = made.filter(pc.invert(pc.starts_with(made["event_id"], HELD)))
    true = pq.read_table(work.folder / "truth.parquet", columns=["stream", "event_id", "primary_id", "orphan"])
    true = true.filter(pc.and_(pc.equal(true["stream"], "clicks"), pc.invert(true["orphan"])))
    found, wanted = _pairs(made), _pairs(true)
    once = pc.unique(found)
    return Seen(
        rows=made.num_rows,
        doubled=made.num_rows - pc.count_distinct(made["event_id"]).as_py(),
        lost=pc.sum(pc.invert(pc.is_in(wanted, once))).as_py(),
        wrong=pc.sum(pc.invert(pc.is_in(once, pc.unique(wanted)))).as_py() or 0,
    )


def _pairs(table: pa.Table) -> Any:
    columns = (pc.cast(table[name], pa.string()) for name in ("event_id", "primary_id"))
    return pc.binary_join_element_wise(*columns, "|").combine_chunks()
