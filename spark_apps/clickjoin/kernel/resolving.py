"""What becomes of some foreign events: screened, looked up, adapted, and what is claimed written to files.

Arrow reads only what is named, so no record passes through Java; runs on executors, which need no clickjoin. It gives
each event the status that joiner/spark_join.py, which works with Spark's own operators, gives it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.adapter import ArrowAdapter
from clickjoin.kernel.adapter_output import GIVEN, merged, misfits_of
from clickjoin.kernel.arrays import distinct, int64_array, rows_at, scalar, text_array, to_numpy, where
from clickjoin.kernel.data_file import DataFile, Target, write_each
from clickjoin.kernel.event_key import dates_of, found_among, lie_before, micros
from clickjoin.kernel.id_lookup import ids_among
from clickjoin.kernel.lookup import Files, look_up, none_needed
from clickjoin.kernel.parquet_scan import KEYS, TimeRanges
from clickjoin.kernel.waiting import Tries, moment_scalar, tried
from clickjoin.model.ids import claims_order

_TIME = pa.timestamp("us", "UTC")
_POINTS = 200
_CLAIMED = ("joined", "filtered", "unjoinable")


class Job(NamedTuple):
    """What is the same for all events of a batch. Times and lengths in microseconds.

    `boundary`: oldest time that the registry answers for, by shard; `floor`: no primary event from before it counts;
    `lookback`: how long before its event a primary event can lie, where its time is not known; `targets`: tables, by
    name; `made`: what the adapter gives; `tries`: when an event is tried again, and when it is given up; `alone`: one
    stream, whose events need no primary event; `by_id`: an id names one event, whatever its time.
    """

    batch: int
    replica: str
    sequence: str
    token: str
    boundary: dict[int, int]
    floor: int | None
    lookback: int | None
    foreign: str
    columns: pa.Schema
    primary: Files
    targets: dict[str, Target]
    adapter: ArrowAdapter
    made: pa.Schema
    tries: Tries
    alone: bool = False
    by_id: bool = False


def resolve(job: Job, claims: Files, rows: pa.Table) -> tuple[dict[str, Any], pa.Table]:
    """What became of some events, each once, and those that are not claimed. Errors: AdapterFault.

    Columns in: the job's, and those of TRIED. Columns out: the same, and status (pending | expired).
    """
    taken, false_positives = _taken(job, claims, rows)
    expired = ~taken & lie_before(rows, job.boundary)
    new = where(rows, ~taken & ~expired)
    at, found = none_needed(new) if job.alone else look_up(new, job.primary, job.lookback, job.floor)
    waits = np.ones(new.num_rows, np.bool_)
    waits[at] = False
    over = waits & job.tries.over(new)
    matched = rows_at(new, at)
    matched = matched.set_column(matched.schema.get_field_index("primary_time"), "primary_time", found["event_time"])
    out, made = adapted(job.adapter, job.made, matched, found)
    by_status = {
        "repeat": where(rows, taken), "expired": where(rows, expired), "pending": where(new, waits & ~over),
        "unjoinable": where(new, over), "joined": rows_at(matched, out), "filtered": _without(matched, out),
    }  # fmt: skip
    tallies = {name: _tally(held, _POINTS if name in _CLAIMED else 0) for name, held in by_status.items()}
    tallies["unjoinable"]["absent"] = int(job.tries.absent(by_status["unjoinable"]).sum())
    done = {"tallies": tallies, "files": _written(job, by_status, made), "misfits": misfits_of(made)}
    return done | {"false_positives": false_positives}, _left(by_status)


def reported(done: dict[str, Any], left: pa.Table) -> Iterator[pa.RecordBatch]:
    """What a task gives back of `resolve`. Columns out: those of its rows, and done (JSON of one part's outcome)."""
    yield from left.append_column("done", pa.nulls(left.num_rows, pa.string())).to_batches()
    empty = [pa.nulls(1, field.type) for field in left.schema]
    said = text_array([json.dumps(done)], pa.string())
    yield pa.RecordBatch.from_arrays([*empty, said], [*left.schema.names, "done"])


def _taken(job: Job, claims: Files, rows: pa.Table) -> tuple[np.ndarray[Any, Any], int]:
    """Which events are claimed; and how many a filter of claims named that are not."""
    if job.by_id:
        found = ids_among(claims.root, claims.paths, pc.unique(rows["event_id"]))
        return to_numpy(pc.is_in(rows["event_id"], value_set=found.ids)), found.false_positives
    when = TimeRanges(distinct(micros(rows)))
    return found_among(rows, claims.rows(rows["event_id"], when, KEYS, others=True)), 0


def adapted(
    adapter: ArrowAdapter, made: pa.Schema, matched: pa.Table, found: pa.Table
) -> tuple[np.ndarray[Any, Any], pa.Table]:
    """Which of some events the adapter keeps, and what it makes of each; `found`: their primary events, in order."""
    if not matched.num_rows:
        return np.zeros(0, np.int64), made.empty_table()
    given = matched.append_column("primary", found["payload"]).select(GIVEN.names)
    return merged(adapter, given, made)


def _without(rows: pa.Table, at: np.ndarray[Any, Any]) -> pa.Table:
    rest = np.ones(rows.num_rows, np.bool_)
    rest[at] = False
    return where(rows, rest)


def _written(job: Job, by_status: Mapping[str, pa.Table], made: pa.Table) -> dict[str, list[DataFile]]:
    """Files of every table that has rows of these events, by its name."""
    rows = _rows_by_table(job, by_status, made)
    order = {"registry": claims_order(by_id=job.by_id)}
    held = write_each([(job.targets[name], some, order.get(name, "")) for name, some in rows.items()])
    return dict(zip(rows, held, strict=True))


def _rows_by_table(job: Job, by_status: Mapping[str, pa.Table], made: pa.Table) -> dict[str, pa.Table]:
    now = moment_scalar(time.time_ns() // 1000)
    stamps = {"token": job.token, "replica": job.replica, "sequence": job.sequence}
    by_batch = {name: scalar(text) for name, text in stamps.items()}
    by_batch |= {"published_at": now, "at": now, "batch": int64_array([job.batch])[0]}
    claims, rows = [], {}
    for status, some in by_status.items():
        more: dict[str, Any] = by_batch
        if status == "joined":
            more = more | {"event_date": dates_of(some)} | {name: made[name] for name in job.made.names[2:]}
        if status == "unjoinable":
            more = more | {"attempt": tried(some)}
        if some.num_rows and status in ("joined", "filtered", "unjoinable", "expired"):
            rows[status] = _columns(job.targets[status], some, more)
        if some.num_rows and status in _CLAIMED:
            claims.append(_columns(job.targets["registry"], some, more | {"outcome": scalar(status)}))
    states = [
        _columns(job.targets["pending"], some, by_batch | job.tries.states(some, status))
        for status, some in by_status.items()
        if some.num_rows and (status == "pending" or job.tries.again)
    ]
    tables = {"registry": claims, "pending": states}
    return rows | {name: pa.concat_tables(parts) for name, parts in tables.items() if parts}


def _columns(target: Target, rows: pa.Table, more: Mapping[str, Any]) -> pa.Table:
    """The columns of a target: of the rows, or given, as a column or as one value for all."""
    columns = []
    for name in target.schema.names:
        found = more.get(name, rows[name] if name in rows.column_names else None)
        columns.append(pa.repeat(found, rows.num_rows) if isinstance(found, pa.Scalar) else found)
    return pa.table(columns, names=target.schema.names)


def _left(by_status: Mapping[str, pa.Table]) -> pa.Table:
    some = {name: by_status[name] for name in ("pending", "expired")}
    return pa.concat_tables(
        [rows.append_column("status", pa.repeat(scalar(name), rows.num_rows)) for name, rows in some.items()]
    )


def _tally(rows: pa.Table, points: int = 0) -> dict[str, Any]:
    times = np.sort(micros(rows))
    some = times[np.linspace(0, len(times) - 1, min(points, len(times))).astype(np.int64)] if len(times) else times
    size = pc.sum(pc.binary_length(rows["payload"])).as_py() or 0
    return {
        "rows": rows.num_rows, "size": size, "shards": distinct(to_numpy(rows["shard"])).tolist(),
        "low": int(times[0]) if len(times) else None, "high": int(times[-1]) if len(times) else None,
        "buckets": pc.unique(rows["bucket"]).to_pylist(), "times": some.tolist(),
    }  # fmt: skip
