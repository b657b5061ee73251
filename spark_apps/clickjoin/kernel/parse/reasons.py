"""Why a record is quarantined: the closed list of reasons, and what to do about each; and records that are read again.

Of those that are read again after a crash only what has not landed is left, as bad ones. Runs on executors too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import Array, bool_array, int64_array, mask, scalar, to_numpy
from clickjoin.kernel.parse.lines import RAW_PART
from clickjoin.kernel.types import RecordFn

REASONS = {
    "broken-json": "the line is not one JSON object, or names a needed key twice; write one object a line",
    "not-an-object": "the line is JSON, but no object; write one object a line",
    "invalid-utf8": "the line is not UTF-8; let the producer write UTF-8",
    "nul-byte": "the line holds a NUL byte, as after a crash of the machine or a bad copy; write the record again",
    "too-long": "the record is longer than limits.max_record; raise that limit or shorten the record",
    "missing-id": "the event id is missing, null or empty; give every record an id",
    "wrong-type": "an id is no string or integer, or a time no text or number; write it as one",
    "id-too-long": "the event id is longer than 1024 bytes; shorten it",
    "no-time-in-id": "the event id does not hold its time in the configured form; fix the id or `event_time`",
    "bad-time": "the column of the event time is missing, empty or no time; write ISO 8601 or a number since 1970",
    "impossible-time": "a time is before limits.earliest or after now plus limits.max_skew; fix the clock",
    "bad-primary-id": "the primary event's id is missing, empty, too long, or its time cannot be derived; fix it",
    "bad-csv": "the line has another number of fields than the header, unbalanced quotes or a lone CR; fix the line",
    "tombstone": "the message has no value: it deletes its key in a compacted topic; write a value, or leave it",
    "empty-value": "the value of the message is empty; write a record",
    "wrong-value": "a value does not fit its column, and output.strict is set; fix the record, or output.columns",
    "settings-changed": "it was bad by limits or output.strict as they were before; export it as a new file",
    "broken-file": "the packed file ends early or is damaged; put the whole file back, it is then read again",
    "unclear-rewrite": "a version of a table rewrote rows whose former files are gone; those known count as repeats",
    "source-lost": "what was planned is in no file, table or topic any more; a file that is put back is read then",
}


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
