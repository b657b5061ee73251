"""CSV lines to columns, and to JSON payloads; all values are text. Runs on executors, and where batches are planned.

The first line of the file that is not blank names the columns, if the source does not. Fields are split by a separator
and quoted by `"`, doubled inside. A record is one line, unless quoted fields may hold line ends; those over several are
parsed one by one, so that none can swallow another.

A quote opens a field only where the field begins; inside, two quotes are one, and one closes the field, so that a
separator or the line's end follows. A record where something else follows, or that has no end within `MOST` bytes, has
a quote too many: its first line stands alone, and the next line begins a record. So one such quote costs one record,
and where records end depends on nothing but the bytes from the beginning of a record on, however they are cut.
"""

from __future__ import annotations

import csv
import io
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from clickjoin.kernel.arrays import bool_array, mask, scalar, text_array, to_numpy
from clickjoin.kernel.parse.arrow_json import bytes_of
from clickjoin.kernel.parse.lines import BOM, Block, Segment, line_ends, pick, rows_at, whole_lines
from clickjoin.kernel.parse.where import Sieve

if TYPE_CHECKING:
    import numpy.typing as npt

    from clickjoin.kernel.parse.lines import Lines

    Ints = npt.NDArray[np.int64]

MOST = 1 << 20  # bytes of a record over several lines
QUOTE = ord('"')


def records_of(blocks: Iterable[bytes], offset: int, separator: str, longest: int = 0) -> Iterator[Block]:
    """Blocks of whole records, from all bytes of some whole records; lines longer than `longest` and MOST in parts."""
    return QuotedRecords(separator).blocks(whole_lines(blocks, offset, max(longest, MOST)))


class QuotedRecords:
    """Finds the ends of records whose fields are separated so."""

    def __init__(self, separator: str) -> None:
        mark, inner = re.escape(separator.encode()), rb'(?:[^"\n]++|"")*+'
        field = rb'(?:"%b"|[^"%b\n][^%b\n]*+|)' % (inner, mark, mark)
        more, opened = rb"(?:%b%b)*+\r?\n?" % (mark, field), rb'(?:%b%b)*+"%b\n?' % (field, mark, inner)
        self._whole, self._opening = re.compile(field + more), re.compile(opened)  # of a line outside of quotes
        self._closing = re.compile(rb'%b"%b' % (inner, more))  # of a line inside
        self._inside = re.compile(rb'%b(?:\n?|"%b%b)' % (inner, mark, opened))

    def blocks(self, lines: Iterable[Block], *, growing: bool = False) -> Iterator[Block]:
        """Blocks of whole records, from blocks of whole lines that begin with a record.

        `growing`: a record at the end whose quotes are open may have more lines to come, and is left out.
        """
        held = Block(0, b"")
        for block in lines:
            if block.part is not None:  # of a line longer than MOST, which no record goes across
                yield from self._block(held, closed=True)
                held = Block(0, b"")
                yield block
                continue
            joined = Block(held.offset, held.data + block.data) if held.data else block
            whole = list(self._block(joined, closed=False))
            yield from whole
            used = sum(len(one.data) for one in whole)
            held = Block(joined.offset + used, joined.data[used:])
        if not growing:
            yield from self._block(held, closed=True)

    def _block(self, block: Block, *, closed: bool) -> Iterator[Block]:
        ends = self._ends(block, closed)
        if len(ends):
            yield Block(block.offset, block.data[: int(ends[-1])], ends=ends)

    def _ends(self, block: Block, closed: bool) -> Ints:
        """Ends of records in a block; `closed`: nothing follows, so that what is open at its end stays so."""
        data = block.data
        ends = line_ends(data)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        if block.offset == 0 and data.startswith(BOM):
            starts[0] = len(BOM)
        quoted = np.unique(
            np.searchsorted(ends, np.flatnonzero(np.frombuffer(data, np.uint8) == QUOTE), side="right")
        ).tolist()
        last = [row for row in quoted if not self._inside.fullmatch(data, starts[row], ends[row])]
        inside, done = np.zeros(len(ends), np.bool_), 0
        for row in quoted:
            if row < done or not self._opens(data, starts[row], ends[row]):
                continue
            at = bisect_left(last, row + 1)
            if at == len(last):
                if not closed and len(data) - starts[row] <= MOST:
                    return ends[:row][~inside[:row]]
            elif ends[last[at]] - starts[row] <= MOST and self._closing.fullmatch(
                data, starts[last[at]], ends[last[at]]
            ):
                inside[row : last[at]], done = True, last[at] + 1
        return ends[~inside]

    def _opens(self, data: bytes, start: int, end: int) -> bool:
        return not self._whole.fullmatch(data, start, end) and bool(self._opening.fullmatch(data, start, end))


HEADER = 1 << 20  # a longer first line is no header
CR_ALONE = "the lines of the file end in CR alone, so that its first line holds them all; end each in LF or CR LF"
csv.field_size_limit(max(csv.field_size_limit(), MOST))
Bad = dict[int, tuple[str, str]]


class CsvForm(NamedTuple):
    """How a file of CSV is written: what is between fields, and the names of its columns if no header names them.

    `multiline`: quoted fields may hold line ends.
    """

    separator: str = ","
    columns: tuple[str, ...] = ()
    multiline: bool = False


class CsvParser:
    """Parses blocks of lines of a file with this header (bytes, as `header_of` gives them; empty if it has none).

    `sieve`: which records are taken; by default all. `wrong`: why none is; `swallowed`: since the header holds them.
    """

    def __init__(self, header: bytes, form: CsvForm, sieve: Sieve | None = None) -> None:
        self.header, self.form, self.names, self.wrong = header, form, list(form.columns), ""
        self.swallowed = False
        self.sieve = sieve or Sieve(None)
        if not self.names:
            self._read_header(header)

    def _read_header(self, header: bytes) -> None:
        line = header.removeprefix(BOM).rstrip(b"\r\n").rpartition(b"\n")[2]  # without blank ones before it
        try:
            rows = list(csv.reader([line.decode()], delimiter=self.form.separator, strict=True))
            self.names = rows[0] if rows else []
        except (UnicodeDecodeError, csv.Error) as error:
            # A quoted name may hold a CR; one that stands elsewhere ends what was written as a line.
            self.swallowed = b"\r" in line
            self.wrong = CR_ALONE if self.swallowed else f"the file's first line is no header: {error}"
        if not header.endswith(b"\n") or not self.names:
            self.wrong = self.wrong or "the file's first line is no header: it is empty or has no end"
        twice = next((name for name in self.names if self.names.count(name) > 1), None)
        if twice is not None:
            self.wrong = f"the header names `{twice}` twice; name each column once"

    def parse(self, lines: Lines) -> tuple[list[Segment], Bad]:
        """All columns of the good lines, and reason and detail of the others by number."""
        segments, bad = self._parsed(lines)
        return [self.sieve.taken(segment) for segment in segments], {} if self.sieve.quiet else bad

    def _parsed(self, lines: Lines) -> tuple[list[Segment], Bad]:
        if self.wrong:
            return [], dict.fromkeys(range(len(lines.end)), ("bad-csv", self.wrong))
        bad = _unsound(lines, self.form.separator)
        segments: list[Segment] = []
        several = set(_over_several_lines(lines)) if self.form.multiline else set()
        if one_by_one := sorted(several - bad.keys()):
            self._each(lines, one_by_one, segments, bad)
        keep = np.ones(len(lines.end), np.bool_)
        keep[[*several, *bad]] = False
        rows = np.flatnonzero(keep)
        whole = lines.whole if len(rows) == len(keep) else pick(lines, keep).whole
        todo = [(0, len(rows))] if len(rows) else []
        while todo:
            low, high = todo.pop()
            part = self._part(whole.slice(low, high - low), rows[low:high])
            if part is None and high - low > 1:
                middle = (low + high) // 2
                todo += [(middle, high), (low, middle)]
            elif part is None:
                bad[int(rows[low])] = ("bad-csv", "a quoted field has no end on its line; double quotes inside of it")
            else:
                segments.append(part[0])
                bad |= part[1]
        return [self._without_headers(segment, bad) for segment in segments], bad

    def _without_headers(self, segment: Segment, bad: Bad) -> Segment:
        """The records that do not name the columns again, as where files were put one behind the other."""
        again = None
        for name in self.names:
            same = pc.equal(segment.columns[name], scalar(name))
            again = same if again is None else pc.and_(again, same)
            if not pc.any(again).as_py():
                return segment
        keep = ~mask(again)
        bad |= dict.fromkeys(segment.rows[~keep].tolist(), ("bad-csv", "the line names the columns again; remove it"))
        kept = {name: column.filter(bool_array(keep)) for name, column in segment.columns.items()}
        return Segment(segment.rows[keep], kept)

    def _each(self, lines: Lines, rows: Sequence[int], segments: list[Segment], bad: Bad) -> None:
        """Parse records over several lines, into one segment."""
        good, kept = [], []
        for row in rows:
            text = lines.whole[row].as_py().removesuffix("\n").removesuffix("\r")
            try:
                found = list(csv.reader(io.StringIO(text, newline=""), delimiter=self.form.separator, strict=True))
            except csv.Error as error:
                bad[row] = ("bad-csv", f"the record over several lines is no CSV: {error}")
                continue
            if len(found) != 1 or len(found[0]) != len(self.names):
                bad[row] = ("bad-csv", self._width(len(found[0])))
                continue
            good.append(found[0])
            kept.append(row)
        if good:
            columns = (text_array(list(column), pa.string()) for column in zip(*good, strict=True))
            segments.append(Segment(np.array(kept, np.int64), dict(zip(self.names, columns, strict=True))))

    def _width(self, found: int) -> str:
        return (
            f"the line has {found} fields, but the header names {len(self.names)}; "
            f"quote fields that hold {self.form.separator!r}"
        )

    def _part(self, whole: Any, rows: Any) -> tuple[Segment, Bad] | None:
        """Columns of some lines; None if a quoted field may have swallowed the end of a line."""
        table, refused = _read(whole, len(self.names), self.form.separator)
        numbers = [number - 1 for number, _ in refused]
        last = [column[-1].as_py() for column in table.columns] if table.num_rows else []
        if table.num_rows + len(refused) != len(rows) or any("\n" in value for value in last):
            return None
        kept = rows if not refused else np.delete(rows, numbers)
        bad = {int(rows[number - 1]): ("bad-csv", self._width(found)) for number, found in refused}
        columns = (column.combine_chunks() for column in table.columns)
        return Segment(kept, dict(zip(self.names, columns, strict=True))), bad

    def payload(self, columns: Mapping[str, Any]) -> Any:
        """Each record as the text of a JSON object, with the columns in the header's order."""
        parts: list[Any] = []
        for name in self.names:
            key = json.dumps(name, ensure_ascii=False)
            parts += [scalar(("," if parts else "{") + key + ':"'), _escaped(columns[name]), scalar('"')]
        return pc.binary_join_element_wise(*parts, scalar("}"), scalar(""))


def _over_several_lines(lines: Lines) -> list[int]:
    newlines = np.flatnonzero(np.frombuffer(lines.data, np.uint8) == 10)
    return rows_at(lines, newlines[~np.isin(newlines + 1, lines.end)])


def _unsound(lines: Lines, separator: str) -> Bad:
    """Lines that cannot be separated from their neighbours, or whose values would be others than were written.

    With an odd number of quotes, a quote that closes no field, or a CR that ends no line.
    """
    bytes_ = np.frombuffer(lines.data, np.uint8)
    bad: Bad = {}
    if b'"' in lines.data:
        mark = re.escape(separator)
        field = f'(?:"(?:[^"]|"")*"|[^"{mark}][^{mark}]*|)'
        whole = to_numpy(pc.match_substring_regex(lines.whole, rf"^{field}(?:{mark}{field})*\r?\n?$"))
        why = ("bad-csv", "a quote stands inside a quoted field and closes it; double quotes inside of it")
        bad |= dict.fromkeys(np.flatnonzero(~whole).tolist(), why)
        odd = np.flatnonzero(to_numpy(pc.count_substring(lines.whole, '"')) % 2).tolist()
        bad |= dict.fromkeys(odd, ("bad-csv", "the line has an odd number of quotes; double quotes inside a field"))
    returns = np.flatnonzero(bytes_[:-1] == 13)
    for row in rows_at(lines, returns[bytes_[returns + 1] != 10]):
        bad[row] = ("bad-csv", "the line holds a CR that is not followed by a newline; remove it")
    return bad


def _read(whole: Any, width: int, separator: str) -> tuple[Any, list[tuple[int, int]]]:
    """All fields as text, and the numbers (from 1) of refused lines with how many fields they have."""
    refused: list[tuple[int, int]] = []

    def refuse(row: Any) -> str:
        refused.append((row.number, row.actual_columns))
        return "skip"

    data = bytes_of(whole)
    names = [str(at) for at in range(width)]
    table = pyarrow.csv.read_csv(
        pa.BufferReader(data),
        read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
        parse_options=pyarrow.csv.ParseOptions(delimiter=separator, invalid_row_handler=refuse),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={name: pa.string() for name in names}, strings_can_be_null=False, check_utf8=False
        ),
    )
    return table, refused


def _escaped(values: Any) -> Any:
    values = pc.replace_substring(values, "\\", "\\\\")
    values = pc.replace_substring(values, '"', '\\"')
    if pc.any(pc.match_substring_regex(values, r"[\x00-\x1f]")).as_py():
        for code in range(1, 32):
            values = pc.replace_substring(values, chr(code), f"\\u{code:04x}")
    return values


def header_of(blocks: Iterable[bytes]) -> bytes:
    """A file's bytes to the end of its first line that is not blank; cut where no header is so long, and then none."""
    held, start = b"", 0
    for block in blocks:
        held += block
        while end := held.find(b"\n", start) + 1:
            if held[start:end].removeprefix(BOM).strip(b" \t\r\n"):
                return held[:end]
            start = end
        if len(held) > HEADER:
            return held[:HEADER]
    return held
