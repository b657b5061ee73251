"""Values at paths of JSON records, one record by one: the rule that Arrow's way has to agree with. Runs on executors.

Of a key that is there twice the last counts. A path that leads through anything but objects and arrays finds nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from clickjoin.kernel.arrays import bool_array, text_array

if TYPE_CHECKING:
    import numpy.typing as npt

    from clickjoin.model.field_path import FieldPath

    Ints = npt.NDArray[np.int64]


class Found(NamedTuple):
    """Values at one path of some records: numbers of the records, and what the values are (see convert)."""

    rows: Ints
    kind: str
    values: Any


class TooDeep(Exception):
    """A record is nested more deeply than Python can follow."""


class Number(str):
    """A JSON number as it stands."""


def decoder() -> json.JSONDecoder:
    """A decoder that leaves numbers as they stand; not one for all, since it cannot travel to executors."""
    return json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=Number)


def decoded(text: str | None, by: json.JSONDecoder | None = None) -> Any:
    """A record, its numbers as they stand. Errors: ValueError for what is no JSON, TooDeep."""
    try:
        return None if text is None else (by or decoder()).decode(text)
    except RecursionError:
        raise TooDeep from None


def value_at(record: Any, path: FieldPath) -> Any:
    """The value at a path; None where there is none."""
    for step in path:
        if isinstance(step, str):
            record = record.get(step) if isinstance(record, dict) else None
        else:
            record = record[step] if isinstance(record, list) and step < len(record) else None
    return record


def kind_of(value: Any) -> tuple[str, Any]:
    """What a value is (see convert; `missing` for null), and it as Arrow is to have it."""
    if value is None or isinstance(value, bool):
        return ("missing" if value is None else "bool"), value
    if isinstance(value, Number):
        return "number", str(value)
    try:
        return ("text", _encodable(value)) if isinstance(value, str) else ("json", json_text(value))
    except (UnicodeEncodeError, RecursionError):  # half of a surrogate pair is no text that a table could hold
        return "bad", ""


def json_text(value: Any) -> str:
    """A value as JSON text, its numbers as they stood. Errors: RecursionError."""
    text = _text(value, ascii_only=False)
    try:
        return _encodable(text)
    except UnicodeEncodeError:
        return _text(value, ascii_only=True)


def _encodable(text: str) -> str:
    text.encode()
    return text


def _text(value: Any, *, ascii_only: bool) -> str:
    if isinstance(value, dict):
        pairs = (
            f"{json.dumps(key, ensure_ascii=ascii_only)}:{_text(value[key], ascii_only=ascii_only)}" for key in value
        )
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_text(item, ascii_only=ascii_only) for item in value) + "]"
    return str(value) if isinstance(value, Number) else json.dumps(value, ensure_ascii=ascii_only)


def by_line(
    texts: Sequence[str | None], rows: Sequence[int], paths: Sequence[FieldPath]
) -> tuple[dict[FieldPath, list[Found]], list[int]]:
    """Values of some records (JSON text, and their numbers) by path; and the numbers of those nested too deeply."""
    found: dict[FieldPath, dict[str, list[tuple[int, Any]]]] = {path: {} for path in paths}
    deep, by = [], decoder()
    for text, row in zip(texts, rows, strict=True):
        try:
            record, broken = decoded(text, by), False
        except TooDeep:
            deep.append(row)
            continue
        except ValueError:
            record, broken = None, True
        for path, kinds in found.items():
            kind, value = ("bad", "") if broken else kind_of(value_at(record, path))
            kinds.setdefault(kind, []).append((row, value))
    return {path: [_found(kind, some) for kind, some in kinds.items()] for path, kinds in found.items()}, deep


def _found(kind: str, some: Sequence[tuple[int, Any]]) -> Found:
    rows = np.array([row for row, _ in some], np.int64)
    if kind == "missing":
        return Found(rows, "text", pa.nulls(len(rows), pa.string()))
    if kind == "bool":
        return Found(rows, kind, bool_array(np.array([value for _, value in some], np.bool_)))
    return Found(rows, kind, text_array([value for _, value in some], pa.string()))
