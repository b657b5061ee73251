"""Good records as rows of their stream's table: bucket, shard, and the batch that lands them. Runs on executors too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array, distinct, int64_array, number_array, scalar, text_array, to_numpy
from clickjoin.kernel.data_file import Target, gathered, write
from clickjoin.kernel.event_key import crcs_of
from clickjoin.kernel.forgotten import NOTHING, Forgotten, without_bytes, without_records
from clickjoin.kernel.parquet_rows import MATCH_KEY, PREFERRED
from clickjoin.kernel.parse.lines import taken_of
from clickjoin.kernel.typed_columns.conditions import meets
from clickjoin.kernel.types import RecordFn
from clickjoin.model.extent import MINUTE
from clickjoin.model.ids import MICROS, bucket_of
from clickjoin.model.where import Condition

_TIME = pa.timestamp("us", "UTC")


class Place(NamedTuple):
    """By what a batch places the records of a stream; times in microseconds.

    `since` and `counts`: the timeline's entries after the first, and the numbers of shards before, between and after.
    `forgotten`: whose records are not stored. `prefer`: conditions that primary events meet which go before others.
    """

    bucket_seconds: int
    since: tuple[int, ...]
    counts: tuple[int, ...]
    batch: int
    replica: str
    planned_at: int
    stream: str
    forgotten: Forgotten = NOTHING
    prefer: tuple[Condition, ...] = ()


def placed(records: pa.Table, place: Place) -> tuple[pa.Table, dict[str, Any]]:
    """The good records with the columns that landing adds, and facts of all records.

    Columns in: those of RECORDS_DDL. Facts: how many are good, bad and passed over; low, high and minutes
    (microseconds) and buckets of the good ones, and the same with named_ before it of the primary events they name.
    """
    records, passed = taken_of(records)
    all_good = records["reason"].null_count == records.num_rows
    good = records if all_good else records.filter(pc.is_null(records["reason"]))
    good = without_records(good, place.forgotten, foreign=place.stream == "foreign")
    count = good.num_rows
    facts = {"good": count, "bad": _count_bad(records), "passed": passed}
    facts |= span_of(place.bucket_seconds, good, "event_time", "")
    if place.stream == "foreign":
        facts |= span_of(place.bucket_seconds, good, "primary_time", "named_")
    made = _for_matching(good, place.prefer) if place.stream == "primary" else {}
    made |= {
        "bucket": buckets_of(good["event_time"], place.bucket_seconds),
        "shard": number_array(_shards(good, place), pa.int32()),
    }
    return _with(good, made | _by(place, count, "landed_at")), facts


def _for_matching(good: pa.Table, prefer: tuple[Condition, ...]) -> dict[str, Any]:
    """The columns of primary events by which foreign events are matched."""
    liked = bool_array(meets(good["payload"], prefer)) if prefer else pa.nulls(good.num_rows, pa.bool_())
    return {MATCH_KEY: good["primary_id"], PREFERRED: liked}


def aside(records: pa.Table, place: Place) -> pa.Table:
    """The bad records with the columns that table `quarantine` has besides. Columns in: those of RECORDS_DDL."""
    records, _ = taken_of(records)
    bad = without_bytes(records.filter(pc.is_valid(records["reason"])), place.forgotten)
    made = {"stream": pa.repeat(scalar(place.stream), bad.num_rows)}
    return _with(bad, made | _by(place, bad.num_rows, "at"))


def _by(place: Place, count: int, at: str) -> dict[str, Any]:
    """Which batch it was, and when that was planned."""
    return {
        "batch": int64_array(np.full(count, place.batch)),
        "replica": pa.repeat(scalar(place.replica), count),
        at: number_array(np.full(count, place.planned_at), _TIME),
    }


def _with(rows: pa.Table, columns: dict[str, Any]) -> pa.Table:
    for name, column in columns.items():
        rows = rows.append_column(name, column)
    return rows


def merged(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Facts of several parts as those of one."""
    whole: dict[str, Any] = dict(found[0]) if found else {"good": 0, "bad": 0, "passed": 0}
    for part in found[1:]:
        for name, fact in part.items():
            whole[name] = _both(name, whole[name], fact)
    return whole


def _both(name: str, one: Any, other: Any) -> Any:
    if isinstance(one, list):
        return sorted({*one, *other})
    if name in ("good", "bad", "passed"):
        return one + other
    known = [fact for fact in (one, other) if fact is not None]
    return (min if name.endswith("low") else max)(known) if known else None


def _shards(rows: pa.Table, place: Place) -> np.ndarray[Any, Any]:
    counts = np.array(place.counts, np.int64)
    if len(counts) > 1:
        micros = to_numpy(rows["event_time"].cast(pa.int64()))
        counts = counts[np.searchsorted(np.array(place.since, np.int64), micros, side="right")]
    return (crcs_of(rows["event_id"]).astype(np.int64) % counts).astype(np.int32)


def buckets_of(times: pa.ChunkedArray, width_seconds: int) -> pa.ChunkedArray:
    """Names of the buckets that some times lie in, null for null; the same rule as ids.bucket_of."""
    micros, width = times.cast(pa.int64()), width_seconds * MICROS
    held = to_numpy(pc.fill_null(micros, int64_array([0])[0])) // width
    starts = distinct(held)
    which = np.searchsorted(starts, held)
    names = text_array([bucket_of(int(start) * width, width_seconds) for start in starts], pa.string())
    return pc.if_else(pc.is_valid(micros), names.take(int64_array(which)), pa.nulls(1, pa.string())[0])


def _count_bad(records: pa.Table) -> int:
    none = number_array([0], pa.int32())[0]
    first = pc.equal(pc.fill_null(records["part"], none), none)  # a record too long for one row counts once
    return int(pc.sum(pc.and_(pc.is_valid(records["reason"]), first)).as_py() or 0)


def span_of(width_seconds: int, good: pa.Table, time: str, prefix: str) -> dict[str, Any]:
    """Where the times of a column lie: low, high and minutes (microseconds), and buckets, each with a prefix."""
    micros = to_numpy(good[time].cast(pa.int64()).drop_null())
    buckets = pc.unique(buckets_of(good[time], width_seconds).drop_null()).to_pylist()
    minutes = (distinct(micros // MINUTE) * MINUTE).tolist()
    ends = {"low": int(micros.min()), "high": int(micros.max())} if len(micros) else {"low": None, "high": None}
    return {f"{prefix}{name}": fact for name, fact in (ends | {"buckets": buckets, "minutes": minutes}).items()}


def land_batches(target: Target, quarantine: Target, place: Place) -> RecordFn:
    """What a task does with the records that it reads: places them, writes them, and says which files and facts.

    Column out: done (JSON).
    """

    def land(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for held in gathered(batches):
            records = pa.Table.from_batches(held)
            good, facts = placed(records, place)
            files = {"good": write(target, good, _order(good)), "bad": write(quarantine, aside(records, place))}
            done = json.dumps(files | {"facts": facts})
            yield pa.RecordBatch.from_arrays([text_array([done], pa.string())], ["done"])

    return land


def _order(rows: pa.Table) -> str:
    """What landed rows are sorted by: look-ups by key read few row groups then. All else stays as the log has it."""
    return MATCH_KEY if MATCH_KEY in rows.column_names and rows[MATCH_KEY].null_count < rows.num_rows else ""


def facts_batches(place: Place) -> RecordFn:
    """What a task does with records to say facts of them, as `placed` names them. Column out: facts (JSON)."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for held in gathered(batches):
            facts = json.dumps(placed(pa.Table.from_batches(held), place)[1])
            yield pa.RecordBatch.from_arrays([text_array([facts], pa.string())], ["facts"])

    return run


def rows_batches(place: Place, schema: pa.Schema, *, good: bool) -> RecordFn:
    """What a task does with records to make rows of them: for their stream's table, or for `quarantine`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            records = pa.Table.from_batches([batch])
            rows = placed(records, place)[0] if good else aside(records, place)
            yield from rows.select(schema.names).cast(schema).to_batches()

    return run
