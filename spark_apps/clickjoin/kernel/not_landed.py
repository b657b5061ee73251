"""Records that are read again after a crash: those that have not landed. Runs on executors too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import Array, bool_array, int64_array, mask, scalar, to_numpy
from clickjoin.kernel.parse.lines import RAW_PART
from clickjoin.kernel.parse.reasons import REASONS
from clickjoin.kernel.types import RecordFn

CHANGED, LOST = "settings-changed", "source-lost"


def only_missing(landed: Mapping[str, Array]) -> RecordFn:
    """What a task does with the records that it reads; see `without_landed`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from without_landed(pa.Table.from_batches([batch]), landed).to_batches()

    return run


def without_landed(records: pa.Table, landed: Mapping[str, Array]) -> pa.Table:
    """Records that have not landed, each as a bad one: one that is good by now is so by other settings.

    `landed`: by partition the offsets that have, sorted. Columns in and out: those of sources.port.RECORDS_DDL.
    """
    keep = mask(pc.equal(records["reason"], scalar(LOST))) | ~_are_landed(records, landed)
    rest = records.filter(bool_array(keep))
    good = pc.is_null(rest["reason"])
    raw = pc.coalesce(rest["raw"], rest["payload"].cast(rest["raw"].type))
    rest = rest.set_column(rest.schema.get_field_index("raw"), "raw", raw)
    for name, value in (("reason", CHANGED), ("detail", REASONS[CHANGED])):
        column = pc.if_else(good, scalar(value), rest[name])
        rest = rest.set_column(rest.schema.get_field_index(name), name, column)
    return rest


def _are_landed(records: pa.Table, landed: Mapping[str, Array]) -> Array:
    parts = to_numpy(pc.fill_null(records["part"].cast(pa.int64()), int64_array([0])[0]))
    begins = to_numpy(records["offset"].cast(pa.int64())) - parts * RAW_PART
    found = np.zeros(records.num_rows, np.bool_)
    partitions = records["source_partition"].combine_chunks().dictionary_encode()
    which = to_numpy(partitions.indices)
    for number, name in enumerate(partitions.dictionary.to_pylist()):
        at = np.flatnonzero(which == number)
        found[at] = np.isin(begins[at], landed.get(name, np.zeros(0, np.int64)))
    return found
