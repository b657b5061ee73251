"""Rows of a Parquet file as JSON lines, always the same bytes for the same rows. Runs on executors.

Times are ISO 8601 text in UTC, cut to microseconds; decimals and dates are text; binary that is no UTF-8 is base64;
a map is an object; NaN and infinity, which JSON does not have, are null.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_ROWS = 4096


def has_footer(file: Any) -> bool:
    """Whether a Parquet file was written to its end."""
    try:
        return bool(pq.read_metadata(file).num_rows >= 0)
    except (pa.ArrowException, OSError, ValueError):
        return False


def json_lines(file: Any) -> Iterator[bytes]:
    """All rows, some at a time, each ended by a newline. Errors: those of PyArrow where the file is damaged."""
    with pq.ParquetFile(file, pre_buffer=False, coerce_int96_timestamp_unit="us") as source:
        for batch in source.iter_batches(_ROWS, use_threads=False):
            rows = pa.table(_readable(batch)).to_pylist(maps_as_pydicts="lossy")
            yield b"".join(_line(row) for row in rows)


def _readable(batch: pa.RecordBatch) -> dict[str, Any]:
    """Columns by name, without nanoseconds, which Python's times do not hold."""
    return {
        field.name: column.cast(pa.timestamp("us", field.type.tz), safe=False)
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns"
        else column
        for field, column in zip(batch.schema, batch.columns, strict=True)
    }


def _line(row: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(row, default=_text, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(row), default=_text, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def _text(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value).isoformat() + "Z"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if isinstance(value, bytes):
        return _of_bytes(value)
    raise ValueError(f"a value of type {type(value).__name__} cannot be written as JSON")


def _of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()
