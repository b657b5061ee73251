"""JSON lines to columns: by Arrow where it can, line by line where it cannot. Runs on workers.

Arrow tells in which row it failed. That is taken as a hint only: what it accepts is accepted where as many rows come
out as lines went in, each of which begins with `{` and ends with `}`, so that no two lines can be one object and no
line two. A column that turns from text to numbers starts a new segment. All else is left to Python's parser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

if TYPE_CHECKING:
    import numpy.typing as npt

    from clickjoin.sources.lines import Lines

    Ints = npt.NDArray[np.int64]

_ROW = re.compile(r"in row (\d+)\Z")
_TURNED = re.compile(r"Column\(/(.*)\) changed from \w+ to (string|number) in row \d+\Z", re.DOTALL)
SHORT = 32  # so few good lines before a bad one, and Arrow costs more than it saves
EXACT = 2**53


class Segment(NamedTuple):
    """Columns of some lines: their numbers, and by name an array of text, integers or floats; missing ones are null."""

    rows: Ints
    columns: Mapping[str, Any]


class Failed(Exception):
    """Arrow refused the lines: in row `row` (None: unknown), or because `column` turned to another kind there."""

    def __init__(self, row: int | None, column: str = "", kind: str = "") -> None:
        super().__init__(row, column, kind)
        self.row, self.column, self.kind = row, column, kind


class JsonParser:
    """Parses blocks of lines. `names`: needed columns, and whether each is an id (if not, a time).

    It remembers which kind of value each column held last, so that a file of integer ids costs no second try.
    """

    def __init__(self, names: Mapping[str, bool]) -> None:
        self.names = dict(names)
        self.kinds = {name: "string" for name in names}

    def parse(self, lines: Lines) -> tuple[list[Segment], dict[int, tuple[str, str]]]:
        """Columns of the lines that are JSON objects, and reason and detail of the others by number."""
        braced = pc.and_(pc.starts_with(lines.text, "{"), pc.ends_with(lines.text, "}"))
        rows = np.flatnonzero(np.asarray(braced))
        slow = np.flatnonzero(~np.asarray(braced)).tolist()
        whole = lines.whole if len(rows) == len(lines.text) else lines.whole.take(pa.array(rows))
        work = _Work(self, whole)
        work.solve(0, len(rows))
        segments = [Segment(rows[part.rows], part.columns) for part in work.done]
        slow += rows[np.array(work.slow, np.int64)].tolist()
        more, bad = _by_hand(lines.text, slow, self.names)
        return segments + more, bad


class _Work:
    """One block's lines on their way: what is parsed, and which lines are left to Python."""

    def __init__(self, parser: JsonParser, whole: Any) -> None:
        self.names, self.kinds = parser.names, parser.kinds
        self.whole = whole
        self.offsets = np.frombuffer(whole.buffers()[1], np.int32)[: len(whole) + 1] if len(whole) else np.zeros(1, np.int32)
        self.done: list[Segment] = []
        self.slow: list[int] = []

    def solve(self, low: int, high: int) -> None:
        """Parse lines [low, high): `first` is where the segment in hand began, `bad` its lines that Arrow refused."""
        first, bad, short, turns = low, list[int](), 0, 0
        while low < high:
            try:
                table = self._read(self._slice(low, high), high - low)
            except Failed as failed:
                turns = turns + 1 if failed.column and not failed.row else 0
                if failed.row is None:
                    break
                low += failed.row
                if failed.column and turns <= len(self.names):
                    self._finish(first, low, bad)
                    self.kinds[failed.column] = failed.kind
                    first, bad = low, []
                    continue
                short = short + 1 if failed.row < SHORT else 0
                skip = min(1 if short < 4 else 8 * SHORT, high - low)
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
        part = self.whole.take(pa.array(rows)) if bad else None
        data = self._slice(first, high) if part is None else _data(part)
        try:
            self.done.append(Segment(rows, self._read(data, len(rows))))
        except Failed:
            self.slow.extend(rows.tolist())

    def _slice(self, low: int, high: int) -> Any:
        begin, end = int(self.offsets[low]), int(self.offsets[high])
        return self.whole.buffers()[2].slice(begin, end - begin)

    def _read(self, data: Any, count: int) -> dict[str, Any]:
        types = {"string": pa.string(), "int64": pa.int64(), "float64": pa.float64()}
        schema = pa.schema([(name, types[kind]) for name, kind in self.kinds.items()])
        try:
            table = pyarrow.json.read_json(
                pa.BufferReader(data),
                read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
                parse_options=pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise self._explain(str(error)) from None
        columns = {name: table.column(name).combine_chunks() for name in self.kinds}
        if table.num_rows != count or any(not _exact(values) for values in columns.values()):
            raise Failed(None)
        return columns

    def _explain(self, message: str) -> Failed:
        if message.startswith("Failed to convert"):
            late = [name for name, kind in self.kinds.items() if kind == "int64" and not self.names[name]]
            return Failed(0, late[0], "float64") if late else Failed(None)
        row, turned = _ROW.search(message), _TURNED.search(message)
        if not row:
            return Failed(None)
        if turned and turned[1] in self.kinds:
            kind = "int64" if turned[2] == "number" else "string"
            return Failed(int(row[1]), turned[1], kind)
        return Failed(int(row[1]))


def _exact(values: Any) -> bool:
    """Whether no float is so big that an integer in its place would have come out different."""
    if not pa.types.is_floating(values.type) or not len(values):
        return True
    top = pc.max(pc.abs(values)).as_py()
    return top is None or top < EXACT


def _data(lines: Any) -> Any:
    """The bytes of some lines, one after another."""
    offsets = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset : lines.offset + len(lines) + 1]
    return lines.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


class _Pairs(list[Any]):
    """A JSON object as its pairs, so that keys named twice are seen."""


class _Integer(str):
    """A JSON integer as it stands."""


class _Bad(Exception):
    """A line is no good record: reason and detail."""


def _by_hand(
    text: Any, rows: list[int], names: Mapping[str, bool]
) -> tuple[list[Segment], dict[int, tuple[str, str]]]:
    """The same for single lines, by Python's parser."""
    groups: dict[tuple[str, ...], list[tuple[int, list[Any]]]] = {}
    bad: dict[int, tuple[str, str]] = {}
    for row in sorted(rows):
        try:
            values = _values(text[row].as_py(), names)
        except _Bad as error:
            bad[row] = error.args[0], error.args[1]
            continue
        groups.setdefault(tuple(type(value).__name__ for value in values), []).append((row, values))
    return list(_grouped(groups, list(names))), bad


def _grouped(groups: Mapping[tuple[str, ...], list[tuple[int, list[Any]]]], names: list[str]) -> Iterator[Segment]:
    types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "NoneType": pa.string()}
    for kinds, found in groups.items():
        rows = np.array([row for row, _ in found], np.int64)
        columns = zip(*(values for _, values in found), strict=True)
        arrays = (pa.array(column, types[kind]) for column, kind in zip(columns, kinds, strict=True))
        yield Segment(rows, dict(zip(names, arrays, strict=True)))


def _values(line: str, names: Mapping[str, bool]) -> list[Any]:
    try:
        pairs = json.loads(line, object_pairs_hook=_Pairs, parse_int=_Integer)
    except RecursionError:
        raise _Bad("broken-json", "the object is nested too deeply; flatten it") from None
    except ValueError as error:
        what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise _Bad("broken-json", f"the line is not one JSON object: {what}{where}; write one object a line") from None
    if not isinstance(pairs, _Pairs):
        raise _Bad("not-an-object", f"the line is JSON, but {_kind(pairs)}; write one object a line")
    keys = [key for key, _ in pairs]
    twice = [name for name in names if keys.count(name) > 1]
    if twice:
        raise _Bad("broken-json", f"`{twice[0]}` is named twice in one object; name it once")
    known = dict(pairs)
    return [(_id if names[name] else _time)(name, known.get(name)) for name in names]


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
