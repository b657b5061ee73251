"""Rows of a Parquet file as JSON lines, always the same bytes for the same rows. Runs on executors.

Times are ISO 8601 text in UTC, cut to microseconds; decimals and dates are text; binary that is no UTF-8 is `base64:…`;
a map is an object; NaN and infinity, which JSON does not have, are null.
Where all values are of plain types the same bytes are made by whole columns: a row at a time takes ten times as long.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clickjoin.kernel.arrays import int64_array, scalar, to_numpy
from clickjoin.kernel.parquet_pages import require_short
from clickjoin.model.field_path import path_text
from clickjoin.model.ids import TypeHints

_ROWS = 4096
_AT_ONCE, _PART = 64 << 20, 16 << 20  # bytes of the rows that are read at a time, and of those that become lines
_BASE64 = "base64:"


def has_footer(file: Any) -> bool:
    """Whether a Parquet file was written to its end."""
    try:
        return bool(pq.read_metadata(file).num_rows >= 0)
    except (pa.ArrowException, OSError, ValueError):
        return False


def json_lines(file: Any) -> Iterator[bytes]:
    """All rows, some at a time, each ended by a newline. Errors: those of PyArrow where the file is damaged.

    A row that cannot be written as JSON is a line that is none, and says why.
    """
    metadata = pq.read_metadata(file)
    require_short(file, metadata)
    texts, rows = _repetitive(metadata)
    with pq.ParquetFile(file, pre_buffer=False, coerce_int96_timestamp_unit="us", read_dictionary=texts) as source:
        names = source.schema_arrow.names
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"it has column `{twice}` twice: name each column once")
        for batch in source.iter_batches(rows, use_threads=False):
            for part in _in_parts(batch, texts):
                yield b"".join(_row_by_row(part, ()))  # offsets are bytes: what these are may never change


def type_hints(fields: Iterable[pa.Field]) -> TypeHints:
    """Columns of a file whose texts do not say what they are."""
    found = list(_leaves(fields, ()))
    times = {path for path, kind in found if pa.types.is_timestamp(kind) and kind.tz is None}
    return TypeHints(frozenset(times), frozenset(path for path, kind in found if pa.types.is_decimal(kind)))


def _leaves(fields: Iterable[pa.Field], above: tuple[str, ...]) -> Iterator[tuple[str, pa.DataType]]:
    for field in fields:
        path = (*above, field.name)
        if pa.types.is_struct(field.type):
            yield from _leaves(field.type, path)
        else:
            yield path_text(path), field.type


def _repetitive(metadata: pq.FileMetaData) -> tuple[list[str], int]:
    """Columns of text whose values are to be kept as they lie, once each, and how many rows are read at a time.

    A value that a dictionary holds once can stand in each row: 9 KB of Parquet can be 7 GB of text.
    """
    texts, largest = set(), 1
    for group in range(metadata.num_row_groups):
        for at in range(metadata.num_columns):
            column = metadata.row_group(group).column(at)
            if not column.has_dictionary_page or column.total_uncompressed_size * _ROWS <= _AT_ONCE:
                continue
            if metadata.schema.column(at).max_repetition_level or "." in column.path_in_schema:
                largest = max(largest, column.total_uncompressed_size)
            elif column.physical_type == "BYTE_ARRAY":
                texts.add(column.path_in_schema)
    return sorted(texts), max(1, min(_ROWS, _AT_ONCE // largest))


def _in_parts(batch: pa.RecordBatch, texts: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Rows in parts of about as many bytes as one may hold, with all values in place."""
    rest = sum(column.nbytes for column in batch.columns if not isinstance(column, pa.DictionaryArray))
    size = np.full(batch.num_rows, rest // max(batch.num_rows, 1), np.int64)
    for name in texts:
        column = batch.column(name)
        if isinstance(column, pa.DictionaryArray) and batch.num_rows:
            lengths = pc.take(pc.binary_length(column.dictionary).cast(pa.int64()), column.indices)
            size += to_numpy(pc.fill_null(lengths, int64_array([0])[0]))
    which = np.cumsum(size) // _PART
    edges = [0, *(np.flatnonzero(np.diff(which)) + 1).tolist(), batch.num_rows]
    for begin, end in pairwise(edges):
        part = batch.slice(begin, end - begin)
        columns = [c.dictionary_decode() if isinstance(c, pa.DictionaryArray) else c for c in part.columns]
        yield pa.RecordBatch.from_arrays(columns, part.schema.names)


def lines_of(batch: pa.RecordBatch, as_json: Sequence[str] = ()) -> list[bytes]:
    """Some rows as such lines. `as_json`: columns of text that stand last, as the objects that they hold.

    Text in them that is no object stays text; what only looks like one makes a line that is no JSON.
    """
    lines = plain_lines(batch, as_json)
    return _row_by_row(batch, as_json) if lines is None else lines


def _row_by_row(batch: pa.RecordBatch, as_json: Sequence[str]) -> list[bytes]:
    rows = pa.table(_readable(batch))
    try:
        return [_spliced(row, as_json) for row in rows.to_pylist(maps_as_pydicts="lossy")]
    except Exception:  # of one value: see which
        return [_line_of(rows.slice(at, 1)) for at in range(rows.num_rows)]


def _spliced(row: dict[str, Any], as_json: Sequence[str]) -> bytes:
    last = {name: row[name] for name in as_json if name in row}
    if not last:
        return _line(row)
    rest = {name: value for name, value in row.items() if name not in last}
    more = b",".join(
        json.dumps(name, ensure_ascii=False).encode() + b":" + (text.encode() if text else _value_text(value))
        for name, value in last.items()
        for text in (_object(value),)
    )
    return (_line(rest)[:-2] + b"," if rest else b"{") + more + b"}\n"


def _value_text(value: Any) -> bytes:
    """A value as it stands in a line."""
    return _line({"": value})[4:-2]


def _object(value: Any) -> str | None:
    """Text that looks like a JSON object, on one line; None where it does not, or is none on several."""
    if not isinstance(value, str) or not (value.startswith("{") and value.endswith("}")):
        return None
    if "\n" not in value and "\r" not in value:
        return value
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return None
    return value.replace("\n", " ").replace("\r", " ")  # no string of JSON holds one


def _line_of(row: pa.Table) -> bytes:
    try:
        return _line({name: _value(row[name]) for name in row.column_names})
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        return f"a row of Parquet that cannot be written as JSON: {why}\n".encode()


def _value(column: Any) -> Any:
    try:
        (value,) = column.to_pylist(maps_as_pydicts="lossy")
    except (OverflowError, ValueError):
        if not (pa.types.is_temporal(column.type)):
            raise
        (value,) = column.cast(pa.string()).to_pylist()  # beyond the years that Python has
    return value


def _readable(batch: pa.RecordBatch) -> dict[str, Any]:
    """Columns by name: times in UTC, of zones that are known or not, without nanoseconds, which Python lacks."""
    return {
        field.name: column.cast(pa.timestamp("us", "UTC" if field.type.tz else None), safe=False)
        if pa.types.is_timestamp(field.type) and (field.type.unit == "ns" or field.type.tz)
        else column
        for field, column in zip(batch.schema, batch.columns, strict=True)
    }


def _line(row: dict[str, Any]) -> bytes:
    try:
        text = _dumped(row)
    except (ValueError, TypeError):  # NaN, or a key of a map that is no text
        text = _dumped(_plain(row))
    return text.encode() + b"\n"


def _dumped(value: Any) -> str:
    return json.dumps(value, default=_text, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    """Without what JSON does not have: NaN and infinity, and keys that are no text."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _key(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _key(value: Any) -> str:
    return value if isinstance(value, str) else str(value if isinstance(value, int | float) else _text(value))


def _text(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value).isoformat() + "Z"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if isinstance(value, bytes):
        return _of_bytes(value)
    raise ValueError(f"a value of type {type(value).__name__} cannot be written as JSON")


def _of_bytes(value: bytes) -> str:
    """Text where it is some, else base64 with a mark, so that two values never look alike."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = _BASE64
    return _BASE64 + base64.b64encode(value).decode() if text.startswith(_BASE64) else text


_ESCAPED = r'["\\\x00-\x1f\x7f]'
_FIRST, _END = -30_610_224_000_000_000, 253_402_300_800_000_000  # microseconds: the years 1000 to 9999
_OBJECT = r"^\{[^\n\r]*\}$"


def plain_lines(batch: pa.RecordBatch, as_json: Sequence[str]) -> list[bytes] | None:
    """The rows, each ended by a newline; None where some value is not plain enough, or there is nothing to write.

    `as_json`: columns of text that stand last, as the objects that they hold.
    """
    names = [name for name in batch.schema.names if name not in as_json]
    names += [name for name in as_json if name in batch.schema.names]
    parts: list[pa.Array | pa.Scalar] = []
    for name in names:
        column = batch.column(name)
        texts = _objects(column) if name in as_json else _texts(column)
        if texts is None:
            return None
        key = json.dumps(name, ensure_ascii=False)
        parts += [scalar(f"{',' if parts else '{'}{key}:"), pc.fill_null(texts, scalar("null"))]
    if not parts or not batch.num_rows:
        return None
    lines = pc.binary_join_element_wise(*parts, scalar("}\n"), scalar(""))
    try:
        return [line.encode() for line in lines.to_pylist()]
    except UnicodeDecodeError:
        return None


def _texts(column: pa.Array) -> pa.Array | None:
    """A column's values as JSON; None where that takes more."""
    for fits, made in _KINDS:
        if fits(column.type):
            return made(column)
    return None


def _quoted(column: pa.Array) -> pa.Array | None:
    if pc.any(pc.match_substring_regex(column, _ESCAPED)).as_py():
        return None
    return pc.binary_join_element_wise(scalar('"'), column, scalar('"'), scalar(""))


def _moments(column: pa.Array) -> pa.Array | None:
    """ISO 8601 as Python writes it: no fraction where it is zero; None of years that Python does not have."""
    known = pc.min_max(pc.cast(pc.cast(column, pa.timestamp("us")), pa.int64())).as_py()
    if known["min"] is not None and (known["min"] < _FIRST or known["max"] >= _END):
        return None
    texts = pc.strftime(pc.cast(column, pa.timestamp("us")), "%Y-%m-%dT%H:%M:%S")
    return pc.binary_join_element_wise(
        scalar('"'), pc.replace_substring_regex(texts, r"\.0{6}$", ""), scalar('Z"'), scalar("")
    )


def _objects(column: pa.Array) -> pa.Array | None:
    if not pa.types.is_string(column.type):
        return None
    found = pc.fill_null(pc.match_substring_regex(column, _OBJECT), fill_value=True)
    return column if pc.all(found).as_py() else None


def _is_moment(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz in (None, "UTC")


def _all_null(column: pa.Array) -> pa.Array:
    return pc.cast(column, pa.string())


_KINDS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array | None]], ...] = (
    (pa.types.is_string, _quoted),
    (_is_moment, _moments),
    (pa.types.is_integer, lambda column: pc.cast(column, pa.string())),
    (pa.types.is_boolean, lambda column: pc.cast(column, pa.string())),
    (pa.types.is_date32, lambda column: _quoted(pc.cast(column, pa.string()))),
    (pa.types.is_null, _all_null),
)
