"""Input records against what has landed: every record that was planned is in a row. Each source answers for its own."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from math import inf
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.dispatcher.journal import JournalReader, OffsetsByStream
from clickjoin.kernel.parse.lines import TOO_LONG
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.extent import text
from clickjoin.model.ids import MICROS
from clickjoin.model.split import PlannedSplit, SplitKey
from clickjoin.sources.completeness import MAX_BYTES, UNPROVEN, UNREAD, Completeness, Evidence, Fault
from clickjoin.verification.findings import RECORDS, SAMPLES, Count
from clickjoin.verification.snapshot import Reading, part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.config import Pipeline
    from clickjoin.config.pipeline import Input
    from clickjoin.engines.port import Lake
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.model.span import Span
    from clickjoin.sources.port import Source


_COLUMNS = ("replica", "batch", "source_partition", "offset", "length")


@dataclass(frozen=True)
class Checked:
    """Counts of `unread` and `overread` records, and of places that are `unproven`; notes on those.

    `unread`: splits whose records are in their source and in no table, by key.
    """

    counts: tuple[Count, ...]
    notes: tuple[str, ...]
    unread: Mapping[SplitKey, PlannedSplit]


def check(
    lake: Lake, pipeline: Pipeline, sources: Mapping[str, Source], reading: Reading, now_micros: int,
    damaged: Collection[str] = (),
) -> Checked:  # fmt: skip
    """Compare all that was planned to be read with what has landed.

    `damaged`: tables that have lost something. What they held is read again however much it is, so that it comes back.
    """
    extent = reading.span.extent(int(pipeline.registry.bucket))
    tables = {item.name: reading.rows.get(item.name) for item in pipeline.inputs}
    landed = [part(lake, name, extent) if rows is None else rows for name, rows in tables.items()]
    seen = reduce(lambda a, b: a.unionAll(b), [rows.select("replica", "batch").distinct() for rows in landed])
    also = {(row["replica"], row["batch"]) for row in seen.distinct().collect()}
    found = planned_splits(lake.delta, reading.journals.settled, reading.span, also)
    offsets = _offsets(lake, pipeline, found)
    most = {item.name: inf if {item.name, "quarantine"} & set(damaged) else MAX_BYTES for item in pipeline.inputs}
    answers = [
        _ask(lake, pipeline, sources, item, found, offsets, now_micros, most[item.name]) for item in pipeline.inputs
    ]
    faults = [fault for answer in answers for fault in answer.faults]
    checked = sum(one.split.bytes or sources[one.stream].size(one.split) for one in found)  # of packed files, about
    counts = tuple(_count(kind, faults, checked) for kind in (*RECORDS, UNPROVEN))
    notes = tuple(note for answer in answers for note in answer.notes) + _planless(reading, found, also)
    return Checked(counts, notes, {fault.planned.key: fault.planned for fault in faults if fault.kind == UNREAD})


def _ask(
    lake: Lake, pipeline: Pipeline, sources: Mapping[str, Source], item: Input, found: Sequence[PlannedSplit],
    offsets: Mapping[str, OffsetsByStream], now_micros: int, most: float,
) -> Completeness:  # fmt: skip
    """What the source of one stream says of its splits."""
    planned = [one for one in found if one.stream == item.name]
    if not planned:
        return Completeness([])
    kept = pipeline.kept(item.name) - pipeline.limits.max_skew
    of_stream = {replica: streams[item.name] for replica, streams in offsets.items() if item.name in streams}
    since = int(now_micros - kept * MICROS)
    too_long = _too_long(lake, item.name) if pipeline.shares_log else {}
    rows = _landed(lake, item.name, planned)
    evidence = Evidence(lake.spark, planned, rows, of_stream, item.spec, since, most, too_long)
    return sources[item.name].completeness(evidence)


def _offsets(lake: Lake, pipeline: Pipeline, found: Sequence[PlannedSplit]) -> dict[str, OffsetsByStream]:
    """How far each replica has been planned."""
    replicas = sorted({planned.replica for planned in found})
    return {name: JournalReader(lake.delta, pipeline.pipeline, name, "join").load().offsets for name in replicas}


def _planless(reading: Reading, found: Sequence[PlannedSplit], landed: set[tuple[str, int]]) -> tuple[str, ...]:
    """A note on batches whose plan is gone: what they were to read is unknown."""
    settled = reading.journals.settled
    done = {(replica, batch) for replica, batch in landed if batch <= settled.get((replica, "join"), 0)}
    count = len(done - {(planned.replica, planned.batch) for planned in found})
    why = "it was rebuilt, or they are older than retention.journal"
    note = f"{count} batches have rows and no plan in the journal ({why}): their ids were checked, their input was not"
    return (note,) if count else ()


def _count(kind: str, faults: list[Fault], checked: int) -> Count:
    own = [fault for fault in faults if fault.kind == kind]
    samples = tuple(fault.sample() for fault in own[:SAMPLES])
    return Count(kind, sum(fault.records for fault in own), checked, kind != UNPROVEN, samples=samples)


def _landed(lake: Lake, stream: str, planned: Sequence[PlannedSplit]) -> DataFrame:
    """Rows that these batches have landed of a stream, and quarantined: see Evidence."""
    ranges: dict[str, tuple[int, int]] = {}
    for one in planned:
        low, high = ranges.get(one.replica, (one.batch, one.batch))
        ranges[one.replica] = (min(low, one.batch), max(high, one.batch))
    where = " OR ".join(
        f"(replica = {text(replica)} AND batch BETWEEN {low} AND {high})" for replica, (low, high) in ranges.items()
    )
    name = F.lit(stream).alias("stream")
    good = lake.read(stream).where(where).select(name, *_COLUMNS, F.lit(None).cast("string").alias("reason"))
    bad = lake.read("quarantine").where(where).where(f"stream = {text(stream)}").select(name, *_COLUMNS, "reason")
    return good.unionAll(bad)


def _too_long(lake: Lake, stream: str) -> dict[tuple[str, str], set[int]]:
    """What was too long for the other stream of one log: see Evidence.too_long."""
    rows = lake.read("quarantine").where(f"stream <> {text(stream)} AND reason = '{TOO_LONG}'")
    found: dict[tuple[str, str], set[int]] = {}
    for replica, partition, offset in rows.select("replica", "source_partition", "offset").collect():
        found.setdefault((replica, partition), set()).add(offset)
    return found


Batch = tuple[str, int]  # replica, number
_CHUNK = 2000  # batches: the journal keeps many days of them, a file or two each


def planned_splits(
    delta: DeltaReader, settled: Mapping[tuple[str, str], int], span: Span, also: Iterable[Batch]
) -> list[PlannedSplit]:
    """What join batches have read that were planned within a range, and these others."""
    wanted = set(also)
    found: list[PlannedSplit] = []
    for (replica, sequence), last in sorted(settled.items()):
        if sequence != "join":
            continue
        rows = _journal(delta, replica, last, span.low, {number for name, number in wanted if name == replica})
        lost = {row["batch"]: json.loads(row["plan"])["lost"] for row in rows if row["state"] == "settled"}
        for row in rows:
            inside = span.low <= row["at"] < span.high or (replica, row["batch"]) in wanted
            if row["state"] == "planned" and inside:
                found += _of_plan(BatchPlan.from_json(row["plan"]), lost.get(row["batch"], {}))
    return sorted(found, key=lambda one: (one.replica, one.batch, one.stream, one.split.partition))


def _journal(delta: DeltaReader, replica: str, last: int, low: datetime, also: set[int]) -> list[dict[str, Any]]:
    """Rows of join batches, newest first, back to a time of planning; beyond it only as far as others are wanted."""
    found: list[dict[str, Any]] = []
    past = False
    while last > 0 and not (past and not any(number <= last for number in also)):
        first = max(last - _CHUNK, 0)
        if not past or any(first < number <= last for number in also):
            key = [("replica", "=", replica), ("sequence", "=", "join"), ("batch", ">", first), ("batch", "<=", last)]
            rows = delta.read("journal", filters=key, columns=["batch", "state", "at", "plan"]).to_pylist()
            found += rows
            past = past or not any(row["at"] >= low for row in rows)
        last = first
    return found


def _of_plan(plan: BatchPlan, lost: Mapping[str, Mapping[str, Any]]) -> list[PlannedSplit]:
    return [
        PlannedSplit(plan.replica, plan.number, stream, plan.planned, split, split.partition in lost.get(stream, ()))
        for stream, splits in plan.splits.items()
        for split in splits
    ]
