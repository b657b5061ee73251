"""Rows of the output made again by today's adapter, by one task: read, answered, and written to other files.

Runs on executors, which need no clickjoin.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.adapter import ArrowAdapter
from clickjoin.kernel.arrays import distinct, mask, rows_at, scalar, text_array, to_numpy, where
from clickjoin.kernel.data_file import DataFile, Target, write
from clickjoin.kernel.event_key import first_of, micros, values_of
from clickjoin.kernel.filesystem import fetch
from clickjoin.kernel.lookup import as_found, first_landed, look_up, none_needed
from clickjoin.kernel.parquet_rows import KEYS, Files, TimeRanges, of_times
from clickjoin.kernel.resolving import adapted
from clickjoin.model.ids import Around

_TIME = pa.timestamp("us", "UTC")
_NAMED = pa.schema([("primary_id", pa.string()), ("primary_time", _TIME)])


class Job(NamedTuple):
    """What is the same for all rows of a range.

    `target`: the output, with the columns that a rebuilt row has; `whole`: all that it has, of rows that are copied;
    `around`, `made`, `alone`: as in resolving.Job. Nothing is written unless it `writes`.
    """

    target: Target
    whole: pa.Schema
    foreign: Files
    primary: Files
    around: Around | None
    adapter: ArrowAdapter
    made: pa.Schema
    alone: bool
    writes: bool


class Part(NamedTuple):
    """Rows of the output: those of some files whose event times lie from `low` on to before `high`, microseconds.

    `files`: paths, each with the values of its partition columns. `copied`: they are not of the range, and stay.
    """

    files: tuple[tuple[str, dict[str, str]], ...]
    low: int
    high: int
    copied: bool = False


class Done(NamedTuple):
    """What became of a part's rows: how many were `read`, and of those of the range how many `rows` are to be rebuilt.

    Of these have no record any more (`foreign`), no primary event any more (`primary`), no answer of the adapter
    (`adapter`); `doubled`: rows besides, of ids that have one already. `files` stand for all rows unless one lacks
    something.
    """

    read: int
    rows: int = 0
    foreign: int = 0
    primary: int = 0
    adapter: int = 0
    doubled: int = 0
    files: Sequence[DataFile] = ()

    @property
    def is_whole(self) -> bool:
        """Whether every row can be rebuilt."""
        return not (self.foreign or self.primary or self.adapter or self.doubled)


def work_of(job: Job, tasks: Sequence[Sequence[Part]]) -> Any:
    """What a task does with the numbers of its parts. Columns out: done (Done as JSON), a row for each part."""

    def run(numbers_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers_:
            for part in (part for number in batch.column(0).to_pylist() for part in tasks[number]):
                said = text_array([json.dumps(rebuilt(job, part))], pa.string())
                yield pa.RecordBatch.from_arrays([said], ["done"])

    return run


def rebuilt(job: Job, part: Part) -> Done:
    """What became of a part's rows. Errors: AdapterFault."""
    fetch([(job.target.root, path) for path, _ in part.files])
    held = _held(job, part)
    if part.copied:
        return Done(held.num_rows, files=write(job.target._replace(schema=job.whole), held) if job.writes else ())
    rows = first_of(held, ())
    records = first_landed(job.foreign, rows["event_id"], _times(rows))
    new = rows.append_column("payload", values_of(rows, records, "payload"))
    new = where(new, to_numpy(pc.is_valid(new["payload"])))
    at, found = _looked_up(job, new)
    matched = as_found(rows_at(new, at), found, job.around)
    out, made = adapted(job.adapter, job.made, matched, found)
    done = Done(
        held.num_rows, rows.num_rows, rows.num_rows - new.num_rows, new.num_rows - len(at), len(at) - len(out),
        held.num_rows - rows.num_rows,
    )  # fmt: skip
    return done._replace(files=_written(job, rows_at(matched, out), made)) if job.writes and done.is_whole else done


def _written(job: Job, rows: pa.Table, made: pa.Table) -> list[DataFile]:
    names, own = job.target.schema.names, made.column_names[2:]
    return write(job.target, pa.table([made[name] if name in own else rows[name] for name in names], names=names))


def _held(job: Job, part: Part) -> pa.Table:
    """Rows of the output: all columns of those that are copied, else those that no adapter makes."""
    schema = job.whole if part.copied else pa.schema([f for f in job.target.schema if f.name not in job.made.names[2:]])
    rows = pa.concat_tables([_of_file(job, part, schema, *file) for file in part.files]).combine_chunks()
    for field in _NAMED:
        if not part.copied and field.name not in rows.column_names:  # the output of one stream names no primary event
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows


def _of_file(job: Job, part: Part, schema: pa.Schema, path: str, values: dict[str, str]) -> pa.Table:
    rows = of_times(job.target.root, path, part.low, part.high, schema)
    for name, value in values.items():
        at = schema.get_field_index(name)
        rows = rows.set_column(at, name, pa.repeat(scalar(value), rows.num_rows).cast(schema.field(name).type))
    return rows


def _times(rows: pa.Table) -> TimeRanges:
    return TimeRanges(distinct(micros(rows)))


def _looked_up(job: Job, new: pa.Table) -> tuple[np.ndarray[Any, Any], pa.Table]:
    if job.alone:
        return none_needed(new)
    if job.around and job.around.pick:
        return look_up(_with_keys(job, new), job.primary, job.around, None)
    names = mask(pc.is_valid(new["primary_id"]))
    if job.around is None:
        names &= mask(pc.is_valid(new["primary_time"]))
    some = np.flatnonzero(names)
    at, found = look_up(rows_at(new, some), job.primary, job.around, None)
    return some[at], found


def _with_keys(job: Job, new: pa.Table) -> pa.Table:
    """Events with the key that they named, in the place of the primary event that was picked by it."""
    landed = job.foreign.rows(new["event_id"], _times(new), pa.schema([*KEYS, _NAMED.field("primary_id")]))
    keys = values_of(new, first_of(landed, ()), "primary_id")
    return new.set_column(new.schema.get_field_index("primary_id"), "primary_id", keys)
