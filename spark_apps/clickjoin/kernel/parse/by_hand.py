"""JSON lines to columns, one by one, with a sentence on what is wrong with each. Runs on executors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from clickjoin.kernel.arrays import int64_array, number_array, text_array
from clickjoin.model.field_path import FieldPath, parse_path

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


class Segment(NamedTuple):
    """Columns of some lines: their numbers, and by name an array of text, integers or floats; missing ones are null."""

    rows: Ints
    columns: Mapping[str, Any]


class _Pairs(list[Any]):
    """A JSON object as its pairs, so that keys named twice are seen."""


class _Integer(str):
    """A JSON integer as it stands."""


class _Bad(Exception):
    """A line is no good record: reason and detail."""


def by_hand(
    text: Any, rows: Sequence[int], names: Mapping[str, bool]
) -> tuple[list[Segment], dict[int, tuple[str, str]], list[int]]:
    """Columns of some of the lines, and reason and detail of those that are bad, by number.

    Third are those nested so deeply that Arrow has the last word.
    """
    groups: dict[tuple[str, ...], list[tuple[int, list[Any]]]] = {}
    bad: dict[int, tuple[str, str]] = {}
    deep = []
    paths = {name: parse_path(name) for name in names}
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs, parse_int=_Integer)
    for row, line in zip(rows, text.take(int64_array(rows)).to_pylist(), strict=True):
        try:
            values = _values(decoder.decode, line, names, paths)
        except _Bad as error:
            bad[row] = error.args[0], error.args[1]
            if error.args[2:]:
                deep.append(row)
            continue
        groups.setdefault(tuple(type(value).__name__ for value in values), []).append((row, values))
    return list(_grouped(groups, list(names))), bad, deep


def _grouped(groups: Mapping[tuple[str, ...], list[tuple[int, list[Any]]]], names: list[str]) -> Iterator[Segment]:
    for kinds, found in groups.items():
        rows = np.array([row for row, _ in found], np.int64)
        columns = zip(*(values for _, values in found), strict=True)
        arrays = (_array(column, kind) for column, kind in zip(columns, kinds, strict=True))
        yield Segment(rows, dict(zip(names, arrays, strict=True)))


def _array(values: Sequence[Any], kind: str) -> Any:
    if kind == "NoneType":
        return pa.nulls(len(values), pa.string())
    if kind == "str":
        return text_array(values, pa.string())
    return number_array(values, pa.int64() if kind == "int" else pa.float64())


def _values(
    decode: Callable[[str], Any], line: str, names: Mapping[str, bool], paths: Mapping[str, FieldPath]
) -> list[Any]:
    try:
        pairs = decode(line)
    except RecursionError:
        raise _Bad("broken-json", "the object is nested too deeply; flatten it", "deep") from None
    except ValueError as error:
        what = error.msg.removesuffix(" at") if isinstance(error, json.JSONDecodeError) else str(error)
        where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise _Bad("broken-json", f"the line is not one JSON object: {what}{where}; write one object a line") from None
    if not isinstance(pairs, _Pairs):
        raise _Bad("not-an-object", f"the line is JSON, but {_kind(pairs)}; write one object a line")
    found = {name: _at(pairs, path) for name, path in paths.items()}
    return [(_id if names[name] else _time)(name, found[name]) for name in names]


def _at(value: Any, path: FieldPath) -> Any:
    """The value at a path; None where nothing is there."""
    for step in path:
        if isinstance(step, int):
            held = value if isinstance(value, list) and not isinstance(value, _Pairs) else []
            value = held[step] if step < len(held) else None
        else:
            named = [item for key, item in value if key == step] if isinstance(value, _Pairs) else []
            if len(named) > 1:
                raise _Bad("broken-json", f"`{step}` is named twice in one object; name it once")
            value = named[0] if named else None
    return value


def _id(name: str, value: Any) -> str | None:
    if isinstance(value, _Integer):
        return "0" if value == "-0" else str(value)
    if value is not None and not isinstance(value, str):
        raise _Bad("wrong-type", f"`{name}` is {_kind(value)}, but an id is a string or an integer")
    return _encodable(name, value)


def _time(name: str, value: Any) -> str | int | float | None:
    if isinstance(value, _Integer):
        return int(value) if len(value) <= 19 and abs(int(value)) < 2**63 else str(value)
    if isinstance(value, float) or value is None:
        return value
    if not isinstance(value, str):
        raise _Bad("wrong-type", f"`{name}` is {_kind(value)}, but a time is text or a number")
    return _encodable(name, value)


def _encodable(name: str, value: str | None) -> str | None:
    try:
        (value or "").encode()
    except UnicodeEncodeError:
        raise _Bad("broken-json", f"`{name}` holds half of a surrogate pair; write whole characters") from None
    return value


def _kind(value: Any) -> str:
    if isinstance(value, _Integer | float) and not isinstance(value, bool):
        return "a number"
    if value is None:
        return "null"
    names = {bool: "true or false", str: "a string", _Pairs: "an object", list: "an array"}
    return names[type(value)]
