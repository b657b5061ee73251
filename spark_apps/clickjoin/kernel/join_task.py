"""The join of one part of a batch, by one task: screened, looked up, and what joins written to files, not yet claimed.

Arrow reads only what is named, so no record passes through Java; runs on executors, which need no clickjoin. It gives
each event the status that joiner/spark_join.py, which works with Spark's own operators, gives it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.adapter import ArrowAdapter
from clickjoin.kernel.adapter_output import GIVEN, merged, misfits_of
from clickjoin.kernel.arrays import (
    bool_array,
    mask,
    number_array,
    rows_at,
    scalar,
    text_array,
    to_numpy,
    where,
)
from clickjoin.kernel.data_file import Target, side_by_side, write
from clickjoin.kernel.event_key import dates_of, first_of, found_among, lie_before, micros
from clickjoin.kernel.id_lookup import ids_among
from clickjoin.kernel.lookup import Files, look_up, none_needed
from clickjoin.kernel.parquet_scan import KEYS, TimeRanges, of_batch
from clickjoin.kernel.short_files import fetch
from clickjoin.model.ids import claims_order

_TIME = pa.timestamp("us", "UTC")
_POINTS = 200


class Part(NamedTuple):
    """Events of some buckets (and some shards; none named: all), and the claims that they are checked against.

    `foreign`: buckets, each with its files of this batch.
    """

    foreign: tuple[tuple[str, tuple[str, ...]], ...]
    shards: tuple[int, ...]
    claims: Files


class Job(NamedTuple):
    """What is the same for all parts of a batch. Times and lengths in microseconds.

    `boundary`: oldest time that the registry answers for, by shard; `floor`: no primary event from before it counts;
    `lookback`: how long before its event a primary event can lie, where its time is not known; `targets`: registry,
    joined and filtered; `made`: what the adapter gives; `alone`: one stream, whose events need no primary event;
    `by_id`: an id names one event, whatever its time.
    """

    batch: int
    replica: str
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
    alone: bool = False
    by_id: bool = False


def resolve(job: Job, part: Part) -> tuple[dict[str, Any], pa.Table]:
    """What became of a part's events, and the rows of those that are not claimed. Errors: AdapterFault.

    Columns out: those of table `foreign`, and status (pending | expired).
    """
    own = [(job.foreign, file) for _, files in part.foreign for file in files]
    fetch([*own, *((held.root, file) for held in (job.primary, part.claims) for file in held.paths)])
    rows = _own(job, part)
    taken, false_positives = _taken(job, part, rows)
    expired = ~taken & lie_before(rows, job.boundary)
    new = where(rows, ~taken & ~expired)
    at, found = none_needed(new) if job.alone else look_up(new, job.primary, job.lookback, job.floor)
    waits = np.ones(new.num_rows, np.bool_)
    waits[at] = False
    left = {"pending": new.filter(bool_array(waits)), "expired": rows.filter(bool_array(expired))}
    done: dict[str, Any] = {"tallies": {"repeat": _tally(rows.filter(bool_array(taken)))}, "files": {}}
    done["false_positives"] = false_positives
    done["tallies"] |= {status: _tally(held) for status, held in left.items()}
    if len(at):
        _settle(job, rows_at(new, at), found, done)
    named = [held.append_column("status", pa.repeat(scalar(name), held.num_rows)) for name, held in left.items()]
    return done, pa.concat_tables(named)


def _taken(job: Job, part: Part, rows: pa.Table) -> tuple[np.ndarray[Any, Any], int]:
    """Which events are claimed; and how many a filter of claims named that are not."""
    if job.by_id:
        found = ids_among(part.claims.root, part.claims.paths, pc.unique(rows["event_id"]))
        return to_numpy(pc.is_in(rows["event_id"], value_set=found.ids)), found.false_positives
    return found_among(rows, part.claims.rows(rows["event_id"], TimeRanges(np.unique(micros(rows))), KEYS)), 0


def _settle(job: Job, joined: pa.Table, found: pa.Table, done: dict[str, Any]) -> None:
    """Write what the adapter makes of joined rows, what it leaves out, and the claims of both."""
    joined = joined.set_column(joined.schema.get_field_index("primary_time"), "primary_time", found["event_time"])
    given = joined.append_column("primary", found["payload"]).select(GIVEN.names)
    origins, made = merged(job.adapter, given, job.made)
    done["misfits"] = misfits_of(made)
    out = np.ones(joined.num_rows, np.bool_)
    out[origins] = False
    kept = rows_at(joined, origins)
    now = number_array([time.time_ns() // 1000], _TIME)[0]
    stamps = {"token": scalar(job.token), "replica": scalar(job.replica), "published_at": now, "at": now}
    own = {"event_date": dates_of(kept)} | {name: made[name] for name in job.made.names[2:]}
    claims, files = [], {}
    for status, rows, more in (("joined", kept, own), ("filtered", joined.filter(bool_array(out)), {})):
        if rows.num_rows:
            done["tallies"][status] = _tally(rows, _POINTS)
            files[status] = (job.targets[status], _columns(job.targets[status], rows, stamps | more), "")
            claims.append(_columns(job.targets["registry"], rows, stamps | {"outcome": scalar(status)}))
    files["registry"] = (job.targets["registry"], pa.concat_tables(claims), claims_order(by_id=job.by_id))
    held = side_by_side(job.targets["registry"].root, lambda each: write(*each), list(files.values()))
    done["files"] |= dict(zip(files, held, strict=True))


def _columns(target: Target, rows: pa.Table, more: Mapping[str, Any]) -> pa.Table:
    """The columns of a target: of the rows, or given, as a column or as one value for all."""
    columns = []
    for name in target.schema.names:
        found = more.get(name, rows[name] if name in rows.column_names else None)
        columns.append(pa.repeat(found, rows.num_rows) if isinstance(found, pa.Scalar) else found)
    return pa.table(columns, names=target.schema.names)


def work_of(job: Job, tasks: Sequence[Sequence[Part]]) -> Any:
    """What a task does with the numbers of its parts. Columns out: those of `resolve`, and done (a part's outcome)."""

    def run(numbers_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers_:
            for part in (part for number in batch.column(0).to_pylist() for part in tasks[number]):
                done, left = resolve(job, part)
                yield from left.append_column("done", pa.nulls(left.num_rows, pa.string())).to_batches()
                empty = [pa.nulls(1, field.type) for field in left.schema]
                said = text_array([json.dumps(done)], pa.string())
                yield pa.RecordBatch.from_arrays([*empty, said], [*left.schema.names, "done"])

    return run


def _own(job: Job, part: Part) -> pa.Table:
    files = [(bucket, file) for bucket, some in part.foreign for file in some]
    rows = pa.concat_tables([_of_file(job, part.shards, *file) for file in files] or [_none(job)])
    return first_of(rows.combine_chunks(), ("source_partition", "offset"))


def _none(job: Job) -> pa.Table:
    return pa.Table.from_batches([], job.columns)


def _of_file(job: Job, shards: Sequence[int], bucket: str, file: str) -> pa.Table:
    """The batch's own rows: file by file, since those of other shards may be many times as many."""
    rows = of_batch(job.foreign, file, job.batch, job.columns)
    keep = mask(pc.equal(rows["replica"], scalar(job.replica)))
    if shards:
        keep &= to_numpy(pc.is_in(rows["shard"], value_set=number_array(shards, pa.int32())))
    rows = where(rows, keep)
    return rows.set_column(rows.schema.get_field_index("bucket"), "bucket", pa.repeat(scalar(bucket), rows.num_rows))


def _tally(rows: pa.Table, points: int = 0) -> dict[str, Any]:
    times = np.sort(micros(rows))
    some = times[np.linspace(0, len(times) - 1, min(points, len(times))).astype(np.int64)] if len(times) else times
    size = pc.sum(pc.binary_length(rows["payload"])).as_py() or 0
    return {
        "rows": rows.num_rows, "size": size, "shards": np.unique(to_numpy(rows["shard"])).tolist(),
        "low": int(times[0]) if len(times) else None, "high": int(times[-1]) if len(times) else None,
        "buckets": pc.unique(rows["bucket"]).to_pylist(), "times": some.tolist(),
    }  # fmt: skip
