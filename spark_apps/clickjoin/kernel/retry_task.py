"""The join of some events that waited, by one task: they come with the rows of its DataFrame, and are resolved.

Runs on executors, which need no clickjoin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import distinct, in_halves, mask, scalar, to_numpy, where
from clickjoin.kernel.event_key import first_of, first_of_id, micros, values_of
from clickjoin.kernel.filesystem import fetch
from clickjoin.kernel.parquet_rows import KEYS, Files, TimeRanges
from clickjoin.kernel.resolving import Job, reported, resolve

_RECORD = pa.schema([*KEYS, ("payload", pa.string()), ("round", pa.int32()), ("batch", pa.int64()),
                     ("replica", pa.string())])  # fmt: skip


def work_of(job: Job, claims: Files, records: Files | None = None) -> Any:
    """What a task does with its rows. Columns in: those of the job. Columns out: those of `reported`.

    `records`: files of table `pending` that hold the records; None where the rows have them.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = [pa.Table.from_batches([batch]).select(job.columns.names).cast(job.columns) for batch in batches]
        if not held:
            return
        for part in resolve_waiting(job, claims, records, pa.concat_tables(held)):
            yield from reported(*part)

    return run


def resolve_waiting(
    job: Job, claims: Files, records: Files | None, rows: pa.Table
) -> list[tuple[dict[str, Any], pa.Table]]:
    """What became of some events that waited, by parts; see `resolve`. `records` as in `work_of`.

    Errors: AdapterFault.
    """
    rows = rows.combine_chunks()
    fetch([(files.root, file) for files in (job.primary, claims) for file in files.paths])
    rows = first_of_id(rows) if job.by_id else rows  # the others are known by their times as well elsewhere
    return in_halves(lambda some: resolve(job, claims, _with_records(job, some, records) if records else some), rows)


def _with_records(job: Job, rows: pa.Table, records: Files) -> pa.Table:
    """Rows with the record of each event: that of its first row that has one, as retry/pending.py has it."""
    found = records.rows(rows["event_id"], TimeRanges(distinct(micros(rows))), _RECORD)
    found = where(
        found, mask(pc.equal(found["replica"], scalar(job.replica))) & to_numpy(pc.is_valid(found["payload"]))
    )
    found = first_of(found.combine_chunks(), ("round", "batch"))
    return rows.set_column(rows.schema.get_field_index("payload"), "payload", values_of(rows, found, "payload"))
