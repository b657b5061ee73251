"""JSON lines to columns: by Arrow where it can, line by line where it cannot. Runs on executors.

Arrow tells in which row it failed, which is taken as a hint only (see arrow_json). A column that turns from text to
numbers starts a new segment. All else is left to Python's parser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import int64_array, number_array, text_array, to_numpy
from clickjoin.kernel.parse.arrow_json import (
    EXACT,
    Shape,
    arrow_name,
    braced,
    bytes_of,
    can_read,
    read_json,
    shape_of,
    values_at,
)
from clickjoin.kernel.parse.fields import FRACTION
from clickjoin.kernel.parse.lines import Segment
from clickjoin.kernel.parse.where import Sieve
from clickjoin.model.field_path import FieldPath, parse_path

if TYPE_CHECKING:
    import numpy.typing as npt

    from clickjoin.kernel.parse.lines import Lines

    Ints = npt.NDArray[np.int64]

_ROW = re.compile(r"in row (\d+)\Z")
_TURNED = re.compile(r"Column\(/(.*)\) changed from \w+ to (string|number|boolean) in row \d+\Z", re.DOTALL)
SHORT = 32  # so few good lines before a bad one, and Arrow costs more than it saves
MANY = 8  # so often in a row, and the next lines are left to Python together
_TEXT, _INTEGER, _FLOAT = pa.string(), pa.int64(), pa.float64()
_KINDS = {"string": _TEXT, "number": _INTEGER, "boolean": pa.bool_()}


class Failed(Exception):
    """Arrow refused the lines: in row `row` (None: unknown), or because `column` turned to another kind there."""

    def __init__(self, row: int | None, column: str = "", kind: pa.DataType | None = None) -> None:
        super().__init__(row, column, kind)
        self.row, self.column, self.kind = row, column, kind


class JsonParser:
    """Parses blocks of lines. `names`: paths of needed values, and whether each is an id (if not, a time).

    `sieve`: which records are taken. It remembers which kind of value each column held last, so that a file of integer
    ids costs no second try.
    """

    def __init__(self, names: Mapping[str, bool], sieve: Sieve | None = None) -> None:
        self.names, self.sieve = dict(names), sieve or Sieve(None)
        self.paths = {name: parse_path(name) for name in (*names, *self.sieve.paths)}
        self.kinds = dict.fromkeys(map(shape_of, self.paths.values()), _TEXT)
        self.readable = can_read(self.kinds)

    def parse(self, lines: Lines) -> tuple[list[Segment], dict[int, tuple[str, str]]]:
        """Columns of the lines that are JSON objects, and reason and detail of the others by number."""
        fit = braced(lines.text) & self.readable
        if b"I" in lines.data and b"Inf" in lines.data:  # a number to Arrow, to no other parser
            fit &= ~to_numpy(pc.match_substring_regex(lines.text, r"Inf($|[^i])"))
        if b"N" in lines.data and b"-NaN" in lines.data:
            fit &= ~to_numpy(pc.match_substring(lines.text, "-NaN"))
        rows, slow = np.flatnonzero(fit), np.flatnonzero(~fit).tolist()
        whole = lines.whole if len(rows) == len(lines.text) else lines.whole.take(int64_array(rows))
        work = _Work(self, whole)
        work.solve(0, len(rows))
        segments = [Segment(rows[part.rows], part.columns) for part in work.done]
        slow += rows[np.array(work.slow, np.int64)].tolist()
        more, bad, deep = by_hand(lines.text, slow, self.names, self.sieve)
        for row in deep if self.readable else ():
            work = _Work(JsonParser(self.names, self.sieve), lines.whole.slice(row, 1).take(int64_array([0])))
            work.solve(0, 1)
            segments += [Segment(np.array([row]), part.columns) for part in work.done]
            if work.done:
                del bad[row]
        return [self.sieve.taken(segment) for segment in segments] + more, bad


class _Work:
    """One block's lines on their way: what is parsed, and which lines are left to Python."""

    def __init__(self, parser: JsonParser, whole: Any) -> None:
        self.names, self.paths, self.kinds = parser.names, parser.paths, parser.kinds
        self.whole = whole
        self.offsets = np.frombuffer(whole.buffers()[1] or bytes(4), np.int32)
        self.done: list[Segment] = []
        self.slow: list[int] = []

    def solve(self, low: int, high: int) -> None:
        """Parse lines [low, high): `first` is where the segment in hand began, `bad` its lines that Arrow refused."""
        first, bad, short, turns = low, list[int](), 0, 0
        while low < high:
            try:
                table = self._read(self._slice(low, high), high - low)
            except Failed as failed:
                # Two objects on one line shift Arrow's count of rows, even beyond the last line.
                if failed.row is None or failed.row >= high - low:
                    break
                low += failed.row
                turns = turns + 1 if failed.column and not failed.row else 0
                short = short + 1 if failed.row < SHORT else 0
                if failed.column and turns <= 2 * len(self.names) and short < MANY:
                    self._finish(first, low, bad)
                    self.kinds |= dict.fromkeys(self._named(failed.column), failed.kind)
                    first, bad = low, []
                    continue
                skip = min(1 if short < MANY else 8 * SHORT, high - low)
                bad.extend(range(low, low + skip))
                low += skip
            else:
                self._finish(first, low, bad)
                self.done.append(Segment(np.arange(low, high), table))
                return
        self._finish(first, low, bad)
        self._halve(low, high)

    def _halve(self, low: int, high: int) -> None:
        """Lines that failed without a word of where."""
        if high - low <= SHORT // 2:
            self.slow.extend(range(low, high))
        elif low < high:
            middle = (low + high) // 2
            self.solve(low, middle)
            self.solve(middle, high)

    def _finish(self, first: int, high: int, bad: list[int]) -> None:
        """Parse the lines of [first, high) that were not refused; those that were go to Python."""
        self.slow.extend(bad)
        rows = np.setdiff1d(np.arange(first, high), np.array(bad, np.int64), assume_unique=True)
        if not len(rows):
            return
        part = self.whole.take(int64_array(rows)) if bad else None
        data = self._slice(first, high) if part is None else bytes_of(part)
        try:
            self.done.append(Segment(rows, self._read(data, len(rows))))
        except Failed:
            self.slow.extend(rows.tolist())

    def _slice(self, low: int, high: int) -> Any:
        begin, end = int(self.offsets[low]), int(self.offsets[high])
        return self.whole.buffers()[2].slice(begin, end - begin)

    def _read(self, data: Any, count: int) -> dict[str, Any]:
        try:
            table = read_json(data, self.kinds)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise self._explain(str(error)) from None
        columns = {name: values_at(table, path) for name, path in self.paths.items()}
        if table.num_rows != count or any(not _exact(values) for values in columns.values()):
            raise self._not_by_floats()
        for name in (name for name, is_id in self.names.items() if is_id):
            columns[name] = _whole(columns[name])
            if pa.types.is_floating(columns[name].type):
                raise self._not_by_floats()
        return columns

    def _not_by_floats(self) -> Failed:
        """Some number is none as a float: ids are read as integers again, as nearly all are."""
        ids = {shape_of(path) for name, path in self.paths.items() if self.names.get(name)}
        self.kinds |= {shape: _INTEGER for shape in ids if self.kinds[shape] == _FLOAT}
        return Failed(None)

    def _explain(self, message: str) -> Failed:
        if message.startswith("Failed to convert"):
            ids = {shape_of(path) for name, path in self.paths.items() if self.names.get(name)}
            late = sorted((shape for shape, kind in self.kinds.items() if kind == _INTEGER), key=ids.__contains__)
            return Failed(0, arrow_name(late[0]), _FLOAT) if late else Failed(None)
        row, turned = _ROW.search(message), _TURNED.search(message)
        if not row:
            return Failed(None)
        if turned and self._may_turn(turned[1], turned[2]):
            return Failed(int(row[1]), turned[1], _KINDS[turned[2]])
        return Failed(int(row[1]))

    def _may_turn(self, column: str, kind: str) -> bool:
        """Whether a column can hold another kind of value from here on: true and false are no id and no time."""
        shapes = set(self._named(column))
        return bool(shapes) and (kind != "boolean" or not shapes & {shape_of(self.paths[name]) for name in self.names})

    def _named(self, column: str) -> list[Shape]:
        """Shapes that Arrow knows by this name."""
        return [shape for shape in self.kinds if arrow_name(shape) == column]


def _exact(values: Any) -> bool:
    """Whether no float is so big that an integer in its place would have come out different."""
    if not pa.types.is_floating(values.type) or not len(values):
        return True
    top = pc.max(pc.abs(values)).as_py()
    return top is None or top < EXACT


def _whole(values: Any) -> Any:
    """Ids that are numbers, as integers; as they are where one is not whole."""
    if not pa.types.is_floating(values.type):
        return values
    return values.cast(_INTEGER) if pc.all(pc.equal(pc.trunc(values), values)).as_py() is not False else values


class _Pairs(list[Any]):
    """A JSON object as its pairs, so that keys named twice are seen."""


class _Integer(str):
    """A JSON integer as it stands."""


class _Bad(Exception):
    """A line is no good record: reason and detail."""


def by_hand(
    text: Any, rows: Sequence[int], names: Mapping[str, bool], sieve: Sieve | None = None
) -> tuple[list[Segment], dict[int, tuple[str, str]], list[int]]:
    """Columns of some of the lines that are taken, and reason and detail of those that are bad, by number.

    Third are those nested so deeply that Arrow has the last word.
    """
    groups: dict[tuple[str, ...], list[tuple[int, list[Any]]]] = {}
    bad: dict[int, tuple[str, str]] = {}
    deep = []
    sieve = sieve or Sieve(None)
    paths = {name: parse_path(name) for name in (*names, *sieve.paths)}
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs, parse_int=_Integer)
    for row, line in zip(rows, text.take(int64_array(rows)).to_pylist(), strict=True):
        try:
            pairs = _decoded(decoder.decode, line)
        except _Bad as error:
            if error.args[2:] or not sieve.quiet:
                bad[row] = error.args[0], error.args[1]
                deep += [row] if error.args[2:] else []
            continue
        try:
            if not sieve.takes(partial(_plain, pairs, paths)):
                continue
            values = _values(pairs, names, paths)
        except _Bad as error:
            bad[row] = error.args[0], error.args[1]
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


def _decoded(decode: Callable[[str], Any], line: str) -> _Pairs:
    """A line's object. Errors: _Bad, of what is bad to anyone who reads the line, or is nested too deeply."""
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
    return pairs


def _plain(pairs: _Pairs, paths: Mapping[str, FieldPath], name: str) -> Any:
    """A value as conditions compare it."""
    value = _at(pairs, paths[name])
    return "0" if isinstance(value, _Integer) and value == "-0" else value


def _values(pairs: _Pairs, names: Mapping[str, bool], paths: Mapping[str, FieldPath]) -> list[Any]:
    found = {name: _at(pairs, paths[name]) for name in names}
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
    if isinstance(value, float):
        if not abs(value) < EXACT:
            raise _Bad("wrong-type", f"`{name}` is a number that a float holds with digits missing; write text")
        if not value.is_integer():
            raise _Bad("wrong-type", f"`{name}` is {FRACTION}")
        return str(int(value))
    if value is not None and not isinstance(value, str):
        raise _Bad("wrong-type", f"`{name}` is {_kind(value)}, but an id is a string or a whole number")
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
