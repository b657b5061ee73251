"""An adapter's answer beside the rows that it was made of, batch by batch, for Spark's plans. Runs on executors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.adapter import ALL_TOUCHES, GIVEN, ArrowAdapter, merged
from clickjoin.kernel.arrays import bool_array, mask, where
from clickjoin.kernel.types import RecordFn


def answers(adapter: ArrowAdapter, made: pa.Schema, prefix: str) -> RecordFn:
    """What a task does with rows. Errors: AdapterFault.

    Columns in: those of GIVEN, found (BOOLEAN: the adapter is given the row), and others. Columns out: the same, merged
    (BOOLEAN: it keeps it), and the adapter's own, with a prefix before the name, null where it does not.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            found = mask(pc.fill_null(rows["found"], pa.scalar(False)))
            some = where(rows, found)
            given = pa.table([some[name].cast(GIVEN.field(name).type) for name in GIVEN.names], schema=GIVEN)
            for name in (name for name in ALL_TOUCHES.names if name in rows.column_names):
                given = given.append_column(name, some[name])
            origins, out = (
                merged(adapter, given, made) if given.num_rows else (np.zeros(0, np.int64), made.empty_table())
            )
            place = np.full(rows.num_rows, -1, np.int64)
            place[np.flatnonzero(found)[origins]] = np.arange(len(origins))
            at = pa.array(place, pa.int64(), mask=place < 0)
            whole = rows.append_column("merged", bool_array(place >= 0))
            for name in made.names[2:]:
                whole = whole.append_column(f"{prefix}{name}", out[name].take(at))
            yield from whole.combine_chunks().to_batches()

    return run
