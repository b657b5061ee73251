"""A table's file written again without some of its rows, or with other values in them. Runs on executors too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel import data_file
from clickjoin.kernel.arrays import Array, bool_array, int64_array, mask, scalar, text_array, where
from clickjoin.kernel.data_file import DataFile, Target
from clickjoin.kernel.event_key import micros, same_key
from clickjoin.kernel.forgotten import EMPTIED, digest
from clickjoin.kernel.parquet_rows import read_file
from clickjoin.model.ids import EVENT_KEY

_RECORD = "payload"


class Change(NamedTuple):
    """What becomes of some rows of a table.

    `meant`: which rows, by those columns of theirs that `looks_at` names; `values`: what they have instead, by column;
    None: they go. `with_record`: only those that hold a record.
    """

    meant: Callable[[pa.Table], Array]
    looks_at: tuple[str, ...]
    values: Mapping[str, str | None] | None = None
    with_record: bool = False


class Job(NamedTuple):
    """A change of a table; `target`: that table, with all of its columns. Nothing is written unless it `writes`."""

    target: Target
    change: Change
    writes: bool = True


class Part(NamedTuple):
    """One of the table's files: its path, and the values of its partition columns."""

    path: str
    values: dict[str, str]


class Done(NamedTuple):
    """How many rows of a file were meant, and the files that have the others, or all of them with other values."""

    rows: int
    files: Sequence[DataFile] = ()


def work_of(job: Job, parts: Sequence[Part]) -> Any:
    """What a task does with the numbers of its parts. Columns out: number, done (Done as JSON)."""

    def run(numbers_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers_:
            for number in batch.column(0).to_pylist():
                said = text_array([json.dumps(rewritten(job, parts[number]))], pa.string())
                yield pa.RecordBatch.from_arrays([int64_array([number]), said], ["number", "done"])

    return run


def rewritten(job: Job, part: Part) -> Done:
    """What a file's rows become. Nothing is written where none of them is meant."""
    meant = job.change.meant(_read(job, part, *job.change.looks_at))
    if job.change.with_record and meant.any():
        meant = meant & holds_record(_read(job, part, _RECORD)[_RECORD])
    if not (meant.any() and job.writes):
        return Done(int(meant.sum()))
    rows = _read(job, part, *job.target.schema.names)
    if job.change.values is None:
        rows = where(rows, ~meant)
    for name, text in (job.change.values or {}).items():
        column = rows[name]
        new = pa.nulls(1, column.type)[0] if text is None else scalar(text).cast(column.type)
        rows = rows.set_column(rows.schema.get_field_index(name), name, pc.if_else(bool_array(meant), new, column))
    return Done(int(meant.sum()), data_file.write(job.target, rows))


def _read(job: Job, part: Part, *names: str) -> pa.Table:
    schema = pa.schema([job.target.schema.field(name) for name in names])
    rows = read_file(job.target.root, part.path, schema)
    for name, value in part.values.items():  # lies in no file
        if (at := schema.get_field_index(name)) >= 0:
            rows = rows.set_column(at, schema.field(at), pa.repeat(scalar(value), rows.num_rows).cast(schema.types[at]))
    return rows


class Events(NamedTuple):
    """Rows of some events, for Change.meant. `keys`: event_id, event_time, and what `same` and `up_to` name.

    `same`: columns that have to be equal, as a token has; `up_to`: those that may not be greater than the key's.
    """

    keys: pa.Table
    same: tuple[str, ...] = ()
    up_to: tuple[str, ...] = ()

    @property
    def looks_at(self) -> tuple[str, ...]:
        """The columns that it needs."""
        return (*EVENT_KEY, *self.same, *self.up_to)

    def __call__(self, rows: pa.Table) -> Array:
        """Which rows they are."""
        keys, found = self.keys, np.zeros(rows.num_rows, np.bool_)
        known = np.flatnonzero(mask(pc.and_(*(pc.is_valid(rows[name]) for name in EVENT_KEY))))
        some = rows.take(int64_array(known))
        one, other = same_key(some["event_id"], micros(some), keys["event_id"], micros(keys))
        for names, alike in ((self.same, pc.equal), (self.up_to, pc.less_equal)):
            for name in names:
                pair = (side[name].take(int64_array(at)) for side, at in ((some, one), (keys, other)))
                keep = mask(alike(*pair))
                one, other = one[keep], other[keep]
        found[known[one]] = True
        return found


class BadRecords(NamedTuple):
    """Rows of bad records, for Change.meant: by stream and the digest of their bytes."""

    digests: Mapping[str, frozenset[str]]

    @property
    def looks_at(self) -> tuple[str, ...]:
        """The columns that it needs."""
        return "stream", "raw"

    def __call__(self, rows: pa.Table) -> Array:
        """Which rows they are."""
        pairs = zip(rows["stream"].to_pylist(), rows["raw"].to_pylist(), strict=True)
        found = [raw is not None and digest(raw) in self.digests.get(stream, ()) for stream, raw in pairs]
        return np.array(found, np.bool_)


def change(
    meant: Events | BadRecords, values: Mapping[str, str | None] | None = None, *, with_record: bool = False
) -> Change:
    """A change of the rows that are meant; see Change."""
    return Change(meant.__call__, meant.looks_at, values, with_record)


def holds_record(payloads: pa.ChunkedArray) -> Array:
    """Which of some records are there, and were not emptied."""
    return mask(pc.not_equal(payloads, EMPTIED))  # of what is null, nothing is known to differ
