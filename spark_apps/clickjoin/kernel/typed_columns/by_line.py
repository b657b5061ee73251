"""Values at paths of JSON records, one record by one: the rule that Arrow's way has to agree with. Runs on executors.

A key of the path that is there twice has no value, and is a misfit; where records are only looked at, its last one
counts. A path that leads through anything but objects and arrays finds nothing.
The same rule says what some records hold, which type fits a column without one, and which records match.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from clickjoin.kernel.arrays import bool_array, text_array
from clickjoin.kernel.types import RecordFn
from clickjoin.model.field_path import FieldPath, path_text

if TYPE_CHECKING:
    import numpy.typing as npt

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


class Repeated(dict[str, Any]):
    """A JSON object that names keys twice: those, and of each its last value."""

    twice: frozenset[str] = frozenset()


class NamedTwice:
    """Stands for the value of a key that is there twice."""


def decoder(objects: Callable[[list[tuple[str, Any]]], Any] | None = None) -> json.JSONDecoder:
    """A decoder that leaves numbers as they stand; not one for all, since it cannot travel to executors.

    `objects`: makes them of their pairs.
    """
    return json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=Number, object_pairs_hook=objects)


def checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of its pairs, in which keys that are there twice are known."""
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = Repeated(found)
    repeated.twice = frozenset(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
    return repeated


def decoded(text: str | None, by: json.JSONDecoder | None = None) -> Any:
    """A record, its numbers as they stand. Errors: ValueError for what is no JSON, TooDeep."""
    try:
        return None if text is None else (by or decoder()).decode(text)
    except RecursionError:
        raise TooDeep from None


def value_at(record: Any, path: FieldPath) -> Any:
    """The value at a path; None where there is none."""
    for step in path:
        if isinstance(record, Repeated) and step in record.twice:
            return NamedTwice()
        if isinstance(step, str):
            record = record.get(step) if isinstance(record, dict) else None
        else:
            record = record[step] if isinstance(record, list) and step < len(record) else None
    return record


def text_at(text: str, path: FieldPath) -> str:
    """The value at a path of a record, as JSON text. Errors: ValueError where it is none, TooDeep, RecursionError."""
    value = value_at(decoded(text, decoder(checked)), path)
    return "named twice" if isinstance(value, NamedTwice) else json_text(value)


def kind_of(value: Any) -> tuple[str, Any]:
    """What a value is (see convert; `missing` for null), and it as Arrow is to have it."""
    if value is None or isinstance(value, bool):
        return ("missing" if value is None else "bool"), value
    if isinstance(value, Number):
        return "number", str(value)
    if isinstance(value, NamedTwice):
        return "bad", ""
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
    deep, by = [], decoder(checked)
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


_DEEPEST = 8


def derived(texts: Sequence[str], path: FieldPath) -> str | None:
    """The type that fits what records (JSON text) hold at a path (see common_type); None where none has a value."""
    return common_type(value_at(_record(text), path) for text in texts)


def common_type(values: Iterable[Any]) -> str | None:
    """BIGINT, DOUBLE or BOOLEAN where all JSON values are, else STRING, for text too; None where all are null."""
    kinds = {_type(value) for value in values if value is not None}
    if kinds == {"BIGINT", "DOUBLE"}:
        return "DOUBLE"
    return kinds.pop() if len(kinds) == 1 else "STRING" if kinds else None


def _type(value: Any) -> str:
    if isinstance(value, bool):
        return "BOOLEAN"
    if not isinstance(value, int | float | Number):
        return "STRING"
    text = str(value)
    return "BIGINT" if text.lstrip("-").isdigit() and -(2**63) <= int(text) < 2**63 else "DOUBLE"


def has(texts: Sequence[str], path: FieldPath) -> bool:
    """Whether any of some records has a value there, null too."""
    return any(_leads(_record(text), path) for text in texts)


def _leads(record: Any, path: FieldPath) -> bool:
    inner = value_at(record, path[:-1])
    return path[-1] in inner if isinstance(inner, dict) else value_at(record, path) is not None


def paths(texts: Sequence[str]) -> list[str]:
    """Paths of the values that some records have, in order; of an array those of its first element."""
    return list(dict.fromkeys(path_text(path) for text in texts for path, _ in leaves(_record(text), elements=1)))


def leaves(value: Any, *, elements: int, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """The values inside a JSON value that are no objects or arrays, with their paths; of an array some elements.

    Left out are those of a key that no path can name, an empty one.
    """
    if not value or len(path) >= _DEEPEST or not isinstance(value, dict | list):
        if path:
            yield path, value
        return
    for step, inner in value.items() if isinstance(value, dict) else enumerate(value[:elements]):
        if step != "":
            yield from leaves(inner, elements=elements, path=(*path, step))


def _record(text: str) -> Any:
    try:
        return decoded(text)
    except (ValueError, TooDeep):
        return None


def fields(text: str) -> list[str]:
    """Names of a record's fields (JSON text), in order, without an empty one, which no path can name."""
    record = _record(text)
    return [name for name in record if name] if isinstance(record, dict) else []


def keep_matching(matches: Callable[[str | None], bool]) -> RecordFn:
    """What a task does to leave only rows whose last column, a text, matches. Columns out: all others."""

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            last = batch.num_columns - 1
            found = [matches(text) for text in batch.column(last).to_pylist()]
            rows = batch.filter(bool_array(np.array(found, np.bool_)))
            yield rows.select(list(range(last)))

    return keep


def matcher(path: FieldPath, value: str) -> Callable[[str | None], bool]:
    """Whether a record (JSON text) holds a value at a path: as text, as a number that is written so, or in an array.

    A record that cannot be followed that far down matches where its text holds the value at all.
    """

    def holds(found: Any) -> bool:
        if isinstance(found, list):
            return any(holds(item) for item in found)
        if isinstance(found, bool):
            return value == str(found).lower()
        return isinstance(found, str | Number) and str(found) == value

    def matches(text: str | None) -> bool:
        if text is None or not path:
            return text == value
        try:
            return holds(_in_each(decoded(text), path))
        except (ValueError, TooDeep):
            return value in text

    return matches


def _in_each(record: Any, path: FieldPath) -> Any:
    """The value at a path, or those of all elements where it leads through an array without saying which."""
    for at, step in enumerate(path):
        if isinstance(record, list) and isinstance(step, str):
            return [_in_each(item, path[at:]) for item in record]
        record = value_at(record, (step,))
    return record
