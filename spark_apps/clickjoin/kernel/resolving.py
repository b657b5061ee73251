"""What becomes of some foreign events: screened, looked up, adapted, and what is claimed written to files.

Arrow reads only what is named, so no record passes through Java; runs on executors, which need no clickjoin. Where a
batch's claims are committed (`Job.fixed`) they alone say what it may publish (Photon, sections 2.2 and 3.3.2).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.adapter import ALL_TOUCHES, GIVEN, ArrowAdapter, merged, misfits_of
from clickjoin.kernel.arrays import distinct, int64_array, mask, rows_at, scalar, text_array, to_numpy, where
from clickjoin.kernel.data_file import DataFile, Target, write_each
from clickjoin.kernel.event_key import dates_of, found_among, lie_before, micros, values_of
from clickjoin.kernel.forgotten import EMPTIED
from clickjoin.kernel.id_filter import ids_among
from clickjoin.kernel.lookup import as_found, look_up, names_forgotten, none_needed
from clickjoin.kernel.parquet_rows import KEYS, Files, TimeRanges
from clickjoin.kernel.waiting import TRIED, Tries, moment_scalar, tried
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.ids import Around, claims_order

_TIME = pa.timestamp("us", "UTC")
_POINTS = 200
_CLAIMED = ("joined", "filtered", "unjoinable")
_CLAIM = pa.schema([*KEYS, ("token", pa.string()), ("outcome", pa.string())])


class Job(NamedTuple):
    """What is the same for all events of a batch. Times and lengths in microseconds.

    `boundary`: oldest time that the registry answers for, by shard. `floor`: no primary event from before it counts.
    `around`: how far from its event a primary event can lie, where its time is not known. `targets`: tables, by
    name. `made`: what the adapter gives. `tries`: when an event is tried again, and when it is given up. `alone`: one
    stream, whose events need no primary event. `by_id`: an id names one event, whatever its time. `fixed`: the batch's
    claims are committed, and nothing else is claimed. `forgets`: of joins by a key, whether anything was forgotten.
    """

    batch: int
    replica: str
    sequence: str
    token: str
    boundary: dict[int, int]
    floor: int | None
    around: Around | None
    foreign: str
    columns: pa.Schema
    primary: Files
    targets: dict[str, Target]
    adapter: ArrowAdapter
    made: pa.Schema
    tries: Tries
    alone: bool = False
    by_id: bool = False
    fixed: bool = False
    forgets: bool = False


class _Decided(NamedTuple):
    """Events by status, and what the adapter made of those that joined, in order; `counts` of what else was noticed."""

    by_status: dict[str, pa.Table]
    made: pa.Table
    counts: dict[str, int]


def resolve(job: Job, claims: Files, rows: pa.Table) -> tuple[dict[str, Any], pa.Table]:
    """What became of some events, each once, and those that are not claimed. Errors: AdapterFault.

    Columns in: the job's, and those of TRIED. Columns out: the same, and status (pending | expired).
    """
    by_status, made, counts = (_by_claims if job.fixed else _decide)(job, claims, rows)
    tallies = {name: _tally(held, _POINTS if name in _CLAIMED else 0) for name, held in by_status.items()}
    tallies["unjoinable"]["absent"] = int(job.tries.absent(by_status["unjoinable"]).sum())
    done = {"tallies": tallies, "files": _written(job, by_status, made), "misfits": misfits_of(made)}
    return done | counts, _left(by_status)


def _decide(job: Job, claims: Files, rows: pa.Table) -> _Decided:
    """The status of events of a batch that has claimed nothing yet."""
    taken, false_positives = _taken(job, claims, rows)
    expired = ~taken & lie_before(rows, job.boundary)
    new = where(rows, ~taken & ~expired)
    over = job.tries.over(new)
    at, found = _looked_up(job, new, over)
    waits = np.ones(new.num_rows, np.bool_)
    waits[at] = False
    over &= waits
    matched = as_found(rows_at(new, at), found, job.around)
    out, made = adapted(job.adapter, job.made, matched, found)
    by_status = {
        "repeat": where(rows, taken), "expired": where(rows, expired), "pending": where(new, waits & ~over),
        "unjoinable": where(new, over), "joined": rows_at(matched, out), "filtered": _without(matched, out),
    }  # fmt: skip
    return _Decided(by_status, made, {"false_positives": false_positives})


def _looked_up(job: Job, new: pa.Table, over: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], pa.Table]:
    """Events with their primary events, see look_up; by a key and time those alone that are `over`: decided now."""
    if job.alone:
        return none_needed(new)
    if not job.tries.decides:
        return look_up(new, job.primary, job.around, job.floor)
    due = np.flatnonzero(over)
    at, found = look_up(rows_at(new, due), job.primary, job.around, job.floor)
    return due[at], found


def _by_claims(job: Job, claims: Files, rows: pa.Table) -> _Decided:
    """The status of events of a batch whose claims are committed: what it has claimed is its own, and nothing else is.

    An event that it claimed as joined, and that cannot be joined now, is `broken` (dropped: its primary event is there,
    and the adapter drops it); where one of the two records was forgotten since it is a `repeat`: no row is due. Nor is
    one of an event that was left out or given up, and forgotten since.
    """
    taken, _ = _taken(job, claims, rows)
    outcome = _own_claims(job, claims, rows)
    mine = to_numpy(pc.is_valid(outcome))
    expired = ~taken & lie_before(rows, job.boundary)
    held = where(rows.append_column("outcome", outcome), mine)
    # What a batch has claimed is there until it is settled, wherever the floor stands by then.
    at, found = none_needed(held) if job.alone else look_up(held, job.primary, job.around, None)
    matched, alone = as_found(rows_at(held, at), found, job.around), _without(held, at)
    due = mask(pc.equal(matched["outcome"], scalar("joined")))
    out, made = adapted(job.adapter, job.made, where(matched, due), where(found, due))
    unfound = mask(pc.equal(alone["outcome"], scalar("joined")))
    lost = pa.concat_tables([_without(where(matched, due), out), where(alone, unfound)])
    gone = _forgotten(job, lost)
    settled = pa.concat_tables([where(matched, ~due), where(alone, ~unfound)])
    empty = mask(pc.equal(settled["payload"], scalar(EMPTIED)))
    forgotten = pa.concat_tables([where(lost, gone), where(settled, empty)]).select(rows.column_names)
    settled = where(settled, ~empty)
    by_status = {
        "repeat": pa.concat_tables([where(rows, taken & ~mine), forgotten]),
        "expired": where(rows, expired), "pending": where(rows, ~taken & ~expired), "broken": where(lost, ~gone),
        "joined": rows_at(where(matched, due), out),
        **{name: settled.filter(pc.equal(settled["outcome"], scalar(name))) for name in ("filtered", "unjoinable")},
    }  # fmt: skip
    dropped = int((~gone[: int(due.sum()) - len(out)]).sum())
    return _Decided(by_status, made, {"false_positives": 0, "dropped": dropped})


def _own_claims(job: Job, claims: Files, rows: pa.Table) -> pa.ChunkedArray:
    """What the batch has claimed each event as; null where it has not. A claim lies at its event's own time."""
    found = claims.rows(rows["event_id"], TimeRanges(distinct(micros(rows))), _CLAIM)
    return values_of(rows, found.filter(pc.equal(found["token"], scalar(job.token))).combine_chunks(), "outcome")


def _forgotten(job: Job, rows: pa.Table) -> np.ndarray[Any, Any]:
    """Which events had their own record, or their primary event's, forgotten."""
    own = mask(pc.equal(rows["payload"], scalar(EMPTIED)))
    if job.tries.decides:  # a forgotten primary event has no key any more; verification finds what was not forgotten
        return own | job.forgets
    return own if job.alone or own.all() else own | names_forgotten(rows, job.primary, job.around)


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
    for name in (name for name in ALL_TOUCHES.names if name in found.column_names):
        given = given.append_column(name, found[name])
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
    by_batch = _by_batch(job.token, job.replica, job.sequence, job.batch)
    claims, rows = [], {}
    for status, some in by_status.items():
        more: dict[str, Any] = by_batch
        if status == "joined":
            more = more | {"event_date": dates_of(some)} | {name: made[name] for name in job.made.names[2:]}
        if status == "unjoinable":
            more = more | {"attempt": tried(some)}
        if some.num_rows and status in ("joined", "filtered", "unjoinable", "expired"):
            rows[status] = _columns(job.targets[status].schema, some, more)
        if some.num_rows and status in _CLAIMED and not job.fixed:
            claims.append(_columns(job.targets["registry"].schema, some, more | {"outcome": scalar(status)}))
    states = [
        _columns(job.targets["pending"].schema, some, by_batch | job.tries.states(some, status))
        for status, some in by_status.items()
        if some.num_rows and (status == "pending" or job.tries.again)
    ]
    tables = {"registry": claims, "pending": states}
    return rows | {name: pa.concat_tables(parts) for name, parts in tables.items() if parts}


def _by_batch(token: str, replica: str, sequence: str, batch: int) -> dict[str, Any]:
    """Columns that say which batch a row is of, and when it was written."""
    now = moment_scalar(time.time_ns() // 1000)
    stamps = {"token": scalar(token), "replica": scalar(replica), "sequence": scalar(sequence)}
    return stamps | {"published_at": now, "at": now, "batch": int64_array([batch])[0]}


def rows_of_batch(schema: pa.Schema, rows: pa.Table, plan: BatchPlan) -> pa.Table:
    """Events that are left of a batch as rows of a side output.

    Columns in: those of `left_schema`. Columns out: the schema's.
    """
    return _columns(schema, rows, _by_batch(plan.token, plan.replica, plan.sequence, plan.number))


def _columns(schema: pa.Schema, rows: pa.Table, more: Mapping[str, Any]) -> pa.Table:
    """The columns of a table: of the rows, or given, as a column or as one value for all."""
    columns = []
    for name in schema.names:
        found = more.get(name, rows[name] if name in rows.column_names else None)
        columns.append(pa.repeat(found, rows.num_rows) if isinstance(found, pa.Scalar) else found)
    return pa.table(columns, names=schema.names)


def left_schema(columns: pa.Schema) -> pa.Schema:
    """Columns of the events that are not claimed; `columns`: the job's."""
    names = dict.fromkeys([*columns.names, *TRIED.names])
    fields = [columns.field(name) if name in columns.names else TRIED.field(name) for name in names]
    return pa.schema([*fields, ("status", pa.string())])


def _left(by_status: Mapping[str, pa.Table]) -> pa.Table:
    some = {name: by_status[name] for name in ("pending", "expired")}
    return pa.concat_tables(
        [rows.append_column("status", pa.repeat(scalar(name), rows.num_rows)) for name, rows in some.items()]
    )


def _tally(rows: pa.Table, points: int = 0) -> dict[str, Any]:
    times = np.sort(micros(rows))
    some = times[np.linspace(0, len(times) - 1, min(points, len(times))).astype(np.int64)] if len(times) else times
    return {
        "rows": rows.num_rows,
        "low": int(times[0]) if len(times) else None, "high": int(times[-1]) if len(times) else None,
        "buckets": pc.unique(rows["bucket"]).to_pylist(), "times": some.tolist(),
    }  # fmt: skip
