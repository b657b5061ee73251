"""Records that were forgotten on request: what is kept of them when they are read again. Runs on executors too.

Their rows are: so the bytes they lay in count as read, and verification finds nothing missing.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array, scalar, to_numpy
from clickjoin.kernel.event_key import found_among
from clickjoin.kernel.parquet_rows import KEYS

EMPTIED = "{}"  # a record that was forgotten; no other is, since each holds its id at least
NO_ID = ""  # names no event
WHY = "forgotten on request"
_NONE = KEYS.empty_table()


class Forgotten(NamedTuple):
    """What was forgotten of a stream. `keys`: event_id and event_time; `digests` (see `digest`) of bad records.

    `by_id`: an id alone names an event, whatever its time.
    """

    keys: pa.Table = _NONE
    digests: frozenset[str] = frozenset()
    by_id: bool = False


NOTHING = Forgotten()


def digest(raw: bytes) -> str:
    """What a bad record, which has no id, is known by; as Spark's sha2(raw, 256)."""
    return hashlib.sha256(raw).hexdigest()


def without_records(good: pa.Table, known: Forgotten, *, foreign: bool) -> pa.Table:
    """Good records, those that were forgotten without what they held. Columns in: those of RECORDS_DDL."""
    if not known.keys.num_rows:
        return good
    if known.by_id:
        gone = to_numpy(pc.is_in(good["event_id"], value_set=pc.unique(known.keys["event_id"])))
    else:
        gone = found_among(good, known.keys)
    return _with(_with(good, "payload", gone, EMPTIED), "primary_id", gone, NO_ID if foreign else None)


def without_bytes(bad: pa.Table, known: Forgotten) -> pa.Table:
    """Bad records, those that were forgotten without their bytes. Columns in: raw and detail among others."""
    if not known.digests:
        return bad
    gone = np.array([raw is not None and digest(raw) in known.digests for raw in bad["raw"].to_pylist()], np.bool_)
    return _with(_with(bad, "raw", gone, None), "detail", gone, WHY)


def _with(rows: pa.Table, name: str, which: np.ndarray[Any, Any], text: str | None) -> pa.Table:
    if not which.any():
        return rows
    column = rows[name]
    new = pa.nulls(1, column.type)[0] if text is None else scalar(text).cast(column.type)
    return rows.set_column(rows.schema.get_field_index(name), name, pc.if_else(bool_array(which), new, column))
