"""JSON lines to columns: by Arrow where it can, line by line where it cannot. Runs on executors.

Arrow tells in which row it failed. That is taken as a hint only: what it accepts is accepted where as many rows come
out as lines went in, each of which begins with `{` and ends with `}`, so that no two lines can be one object and no
line two. A column that turns from text to numbers starts a new segment. All else is left to Python's parser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from clickjoin.kernel.arrays import int64_array, to_numpy
from clickjoin.kernel.parse.by_hand import Segment, by_hand
from clickjoin.kernel.parse.nested import arrow_name, schema_of, values_at
from clickjoin.model.field_path import parse_path

if TYPE_CHECKING:
    import numpy.typing as npt

    from clickjoin.kernel.parse.lines import Lines

    Ints = npt.NDArray[np.int64]

_ROW = re.compile(r"in row (\d+)\Z")
_TURNED = re.compile(r"Column\(/(.*)\) changed from \w+ to (string|number) in row \d+\Z", re.DOTALL)
SHORT = 32  # so few good lines before a bad one, and Arrow costs more than it saves
MANY = 8  # so often in a row, and the next lines are left to Python together
EXACT = 2**53
_TYPES = {"string": pa.string(), "int64": pa.int64(), "float64": pa.float64()}


class Failed(Exception):
    """Arrow refused the lines: in row `row` (None: unknown), or because `column` turned to another kind there."""

    def __init__(self, row: int | None, column: str = "", kind: str = "") -> None:
        super().__init__(row, column, kind)
        self.row, self.column, self.kind = row, column, kind


class JsonParser:
    """Parses blocks of lines. `names`: paths of needed values, and whether each is an id (if not, a time).

    It remembers which kind of value each column held last, so that a file of integer ids costs no second try.
    """

    def __init__(self, names: Mapping[str, bool]) -> None:
        self.names = dict(names)
        self.paths = {name: parse_path(name) for name in names}
        self.kinds = dict.fromkeys(names, "string")

    def parse(self, lines: Lines) -> tuple[list[Segment], dict[int, tuple[str, str]]]:
        """Columns of the lines that are JSON objects, and reason and detail of the others by number."""
        braced = to_numpy(pc.and_(pc.starts_with(lines.text, "{"), pc.ends_with(lines.text, "}")))
        if b"I" in lines.data and b"Inf" in lines.data:  # a number to Arrow, to no other parser
            braced &= ~to_numpy(pc.match_substring_regex(lines.text, r"Inf($|[^i])"))
        if b"N" in lines.data and b"-NaN" in lines.data:
            braced &= ~to_numpy(pc.match_substring(lines.text, "-NaN"))
        rows, slow = np.flatnonzero(braced), np.flatnonzero(~braced).tolist()
        whole = lines.whole if len(rows) == len(lines.text) else lines.whole.take(int64_array(rows))
        work = _Work(self, whole)
        work.solve(0, len(rows))
        segments = [Segment(rows[part.rows], part.columns) for part in work.done]
        slow += rows[np.array(work.slow, np.int64)].tolist()
        more, bad, deep = by_hand(lines.text, slow, self.names)
        for row in deep:
            work = _Work(JsonParser(self.names), lines.whole.slice(row, 1).take(int64_array([0])))
            work.solve(0, 1)
            more += [Segment(np.array([row]), part.columns) for part in work.done]
            if work.done:
                del bad[row]
        return segments + more, bad


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
        data = self._slice(first, high) if part is None else _data(part)
        try:
            self.done.append(Segment(rows, self._read(data, len(rows))))
        except Failed:
            self.slow.extend(rows.tolist())

    def _slice(self, low: int, high: int) -> Any:
        begin, end = int(self.offsets[low]), int(self.offsets[high])
        return self.whole.buffers()[2].slice(begin, end - begin)

    def _read(self, data: Any, count: int) -> dict[str, Any]:
        schema = schema_of({self.paths[name]: _TYPES[kind] for name, kind in self.kinds.items()})
        if schema is None:
            raise Failed(None)
        try:
            table = pyarrow.json.read_json(
                pa.BufferReader(data),
                read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
                parse_options=pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise self._explain(str(error)) from None
        columns = {name: values_at(table, path) for name, path in self.paths.items()}
        if table.num_rows != count or any(not _exact(values) for values in columns.values()):
            raise Failed(None)
        return columns

    def _explain(self, message: str) -> Failed:
        if message.startswith("Failed to convert"):
            # Never an id: as a float it would be another text.
            late = [column for column in self._whole_numbers() if not any(map(self.names.get, self._named(column)))]
            return Failed(0, late[0], "float64") if late else Failed(None)
        row, turned = _ROW.search(message), _TURNED.search(message)
        if not row:
            return Failed(None)
        if turned and self._named(turned[1]):
            kind = "int64" if turned[2] == "number" else "string"
            return Failed(int(row[1]), turned[1], kind)
        return Failed(int(row[1]))

    def _whole_numbers(self) -> list[str]:
        """What Arrow calls the values that are read as integers."""
        return [arrow_name(self.paths[name]) for name, kind in self.kinds.items() if kind == "int64"]

    def _named(self, column: str) -> list[str]:
        """Names of the values that Arrow knows by this name."""
        return [name for name, path in self.paths.items() if arrow_name(path) == column]


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
