"""One type in three languages: Spark SQL's DDL, Delta's schema, Arrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from clickjoin.model.errors import LakeError

# What a task does with its record batches.
RecordFn = Callable[[Iterator[Any]], Iterator[Any]]
_DECIMAL = re.compile(r"decimal\((\d+), *(\d+)\)", re.IGNORECASE)
_ROWS = re.compile(r"array<struct<(.+)>>", re.IGNORECASE)  # rows within a row, whose values are of the types below
_FIELD = re.compile(r"`?(\w+)`?: *(decimal\(\d+, *\d+\)|\w+)", re.IGNORECASE)
_DELTA = {
    "STRING": "string",
    "TIMESTAMP": "timestamp",
    "INT": "integer",
    "BIGINT": "long",
    "DOUBLE": "double",
    "FLOAT": "float",
    "BOOLEAN": "boolean",
    "BINARY": "binary",
    "DATE": "date",
}
_ARROW = {
    "string": pa.string(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "integer": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "float": pa.float32(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
}


def delta_type(kind: str) -> str:
    """Delta's name of a Spark SQL type. Errors: LakeError for one that an adapter's column cannot have."""
    if found := _ROWS.fullmatch(kind.strip()):
        return rows_type({name: delta_type(each) for name, each in _FIELD.findall(found[1])})
    name = kind.strip().upper()
    if _DECIMAL.fullmatch(name):
        return name.lower().replace(" ", "")
    if name not in _DELTA:
        raise LakeError(f"type {kind} is not supported for a column", remedy=f"Use one of {', '.join(_DELTA)}")
    return _DELTA[name]


def rows_type(kinds: Mapping[str, str]) -> str:
    """The type of a column that holds some rows: the types of their columns, in any of the languages but Arrow."""
    return f"array<struct<{','.join(f'`{name}`:{kind}' for name, kind in kinds.items())}>>"


def arrow_type(kind: str) -> pa.DataType:
    """Arrow's type for Delta's name of one."""
    if found := _ROWS.fullmatch(kind):
        return pa.list_(pa.struct([(name, arrow_type(each)) for name, each in _FIELD.findall(found[1])]))
    decimal = _DECIMAL.fullmatch(kind)
    return pa.decimal128(*map(int, decimal.groups())) if decimal else _ARROW[kind]
