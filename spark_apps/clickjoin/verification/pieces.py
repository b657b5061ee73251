"""What settled batches had planned to read, and whether their plans fit together: pure, but for reading the journal."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from clickjoin.dispatcher.plan import BatchPlan
from clickjoin.sources.base import Slice

if TYPE_CHECKING:
    from clickjoin.lake import SmallTables
    from clickjoin.verification.reading import Span

Batch = tuple[str, int]  # replica, number
_CHUNK = 2000  # batches: the journal keeps many days of them, a file or two each


@dataclass(frozen=True)
class Piece:
    """A slice of a stream that a settled batch has read, unless it was `lost`. `planned`: microseconds since 1970."""

    replica: str
    batch: int
    stream: str
    planned: int
    slice: Slice
    lost: bool = False

    @property
    def key(self) -> tuple[str, str, int, str]:
        """Stream, replica, batch, generation: there is one slice of it."""
        return self.stream, self.replica, self.batch, self.slice.generation


@dataclass(frozen=True)
class Fault:
    """Bytes [start, end) of a file (end -1: to its end) that were not read as planned, and how many records of them."""

    kind: str
    piece: Piece
    start: int
    end: int
    records: int
    detail: str

    def sample(self) -> dict[str, Any]:
        """As plain data."""
        where = {"path": self.piece.slice.path, "generation": self.piece.slice.generation}
        batch = {"replica": self.piece.replica, "batch": self.piece.batch, "stream": self.piece.stream}
        return where | {"from": self.start, "to": self.end, "records": self.records} | batch | {"detail": self.detail}


def pieces(
    small: SmallTables, settled: Mapping[tuple[str, str], int], span: Span, also: Iterable[Batch]
) -> list[Piece]:
    """What join batches have read that were planned within a range, and these others."""
    wanted = set(also)
    found: list[Piece] = []
    for (replica, sequence), last in sorted(settled.items()):
        if sequence != "join":
            continue
        rows = _journal(small, replica, last, span.low, {number for name, number in wanted if name == replica})
        lost = {row["batch"]: json.loads(row["plan"])["lost"] for row in rows if row["state"] == "settled"}
        for row in rows:
            inside = span.low <= row["at"] < span.high or (replica, row["batch"]) in wanted
            if row["state"] == "planned" and inside:
                found += _pieces(BatchPlan.from_json(row["plan"]), lost.get(row["batch"], {}))
    return sorted(found, key=lambda piece: (piece.replica, piece.batch, piece.stream, piece.slice.generation))


def _journal(small: SmallTables, replica: str, last: int, low: datetime, also: set[int]) -> list[dict[str, Any]]:
    """Rows of join batches, newest first, back to a time of planning; beyond it only as far as others are wanted."""
    found: list[dict[str, Any]] = []
    past = False
    while last > 0 and not (past and not any(number <= last for number in also)):
        first = max(last - _CHUNK, 0)
        if not past or any(first < number <= last for number in also):
            key = [("replica", "=", replica), ("sequence", "=", "join"), ("batch", ">", first), ("batch", "<=", last)]
            rows = small.read("batches", filters=key, columns=["batch", "state", "at", "plan"]).to_pylist()
            found += rows
            past = past or not any(row["at"] >= low for row in rows)
        last = first
    return found


def _pieces(plan: BatchPlan, lost: Mapping[str, list[dict[str, Any]]]) -> list[Piece]:
    gone = {(stream, item["generation"]) for stream, items in lost.items() for item in items}
    return [
        Piece(plan.replica, plan.number, stream, plan.planned, piece, (stream, piece.generation) in gone)
        for stream, slices in plan.slices.items()
        for piece in slices
    ]


def misfits(found: Iterable[Piece]) -> list[Fault]:
    """Where slices of one generation leave bytes out, or read some twice. Lost slices are planned again, rightly."""
    files: defaultdict[tuple[str, str, str], list[Piece]] = defaultdict(list)
    for piece in found:
        if not piece.lost:
            files[piece.replica, piece.stream, piece.slice.generation].append(piece)
    faults = []
    for parts in files.values():
        parts.sort(key=lambda piece: piece.slice.start)
        for left, right in pairwise(parts):
            end, start = left.slice.end, right.slice.start
            if end < 0 or start < end:
                faults.append(Fault("overread", right, start, end, 1, f"batch {left.batch} had read this already"))
            elif start > end and right.batch == left.batch + 1:
                faults.append(Fault("unread", left, end, start, 1, f"batch {right.batch} began behind these bytes"))
    return faults
