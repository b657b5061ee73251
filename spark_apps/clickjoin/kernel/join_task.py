"""The join of one part of a batch of new records, by one task: its events are read from what has landed, and resolved.

Runs on executors, which need no clickjoin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import in_halves, mask, number_array, scalar, to_numpy, where
from clickjoin.kernel.event_key import first_of, first_of_id
from clickjoin.kernel.filesystem import fetch
from clickjoin.kernel.parquet_rows import Files, of_batch
from clickjoin.kernel.resolving import Job, reported, resolve
from clickjoin.kernel.waiting import first_try


class Part(NamedTuple):
    """Events of some buckets (and some shards; none named: all), and the claims that they are checked against.

    `foreign`: buckets, each with its files of this batch.
    """

    foreign: tuple[tuple[str, tuple[str, ...]], ...]
    shards: tuple[int, ...]
    claims: Files


def work_of(job: Job, tasks: Sequence[Sequence[Part]]) -> Any:
    """What a task does with the numbers of its parts. Columns out: those of `reported`."""

    def run(numbers_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers_:
            for part in (part for number in batch.column(0).to_pylist() for part in tasks[number]):
                for some in resolve_part(job, part):
                    yield from reported(*some)

    return run


def resolve_part(job: Job, part: Part) -> list[tuple[dict[str, Any], pa.Table]]:
    """What became of a part's events, by parts of it; see `resolve`. Errors: AdapterFault."""
    own = [(job.foreign, file) for _, files in part.foreign for file in files]
    fetch([*own, *((held.root, file) for held in (job.primary, part.claims) for file in held.paths)])
    return in_halves(lambda some: resolve(job, part.claims, some), first_try(_own(job, part)))


def _own(job: Job, part: Part) -> pa.Table:
    files = [(bucket, file) for bucket, some in part.foreign for file in some]
    rows = pa.concat_tables([_of_file(job, part.shards, *file) for file in files] or [_none(job)])
    unique = first_of_id if job.by_id else first_of
    return unique(rows.combine_chunks(), ("source_partition", "offset"))


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
