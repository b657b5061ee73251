"""What a task does: reads its chunks and turns them into records. Runs on workers, which need no clickjoin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from clickjoin.kernel.arrays import bool_array, int64_array, number_array, scalar, text_array, to_numpy
from clickjoin.kernel.chunk import Chunk
from clickjoin.kernel.content import LONGEST, other_than_text
from clickjoin.kernel.file_bytes import (
    Outside,
    Proof,
    changed,
    has_head,
    holds,
    opened_chunk,
    packed_blocks,
    plain_blocks,
    read_at,
    unplaced,
)
from clickjoin.kernel.packed import BLOCK, BrokenFile, is_packed, type_hints_of
from clickjoin.kernel.parse.csv_lines import HEADER, CsvParser, header_of, records_of
from clickjoin.kernel.parse.envelopes import each_element
from clickjoin.kernel.parse.fields import Understood, needed, understand
from clickjoin.kernel.parse.json_lines import JsonParser
from clickjoin.kernel.parse.json_texts import JsonTexts
from clickjoin.kernel.parse.lines import (
    PASSED,
    RAW_PART,
    Block,
    Lines,
    Segment,
    chunk_blocks,
    column_of,
    pick,
    screen,
    split,
    too_long,
    whole_lines,
)
from clickjoin.kernel.parse.where import Sieve
from clickjoin.kernel.remote_file import Handle, length_of
from clickjoin.kernel.typed_columns.columns import wrong_values
from clickjoin.model.errors import SourceError
from clickjoin.model.ids import TypeHints

if TYPE_CHECKING:
    from clickjoin.kernel.chunk import Chunk, KafkaChunk
    from clickjoin.kernel.types import RecordFn
    from clickjoin.model.ids import RecordSpec

    Piece = Chunk | KafkaChunk

_TIME = pa.timestamp("us", "UTC")
_NO_TEXT = ("nul-byte", "invalid-utf8")  # reasons why bytes may be of another kind of file
_NO_PROOF = Proof(0, "", 0, 0, "")
SCHEMA = pa.schema([
    ("event_id", pa.string()), ("event_time", _TIME), ("primary_id", pa.string()), ("primary_time", _TIME),
    ("payload", pa.string()), ("reason", pa.string()), ("detail", pa.string()), ("raw", pa.binary()),
    ("part", pa.int32()), ("path", pa.string()), ("source_partition", pa.string()), ("offset", pa.int64()),
    ("length", pa.int64()),
])  # fmt: skip


def read_chunk(chunk: Chunk, spec: RecordSpec, size: int = BLOCK) -> Iterator[pa.RecordBatch]:
    """Records of a chunk, columns as RECORDS_DDL; `size` is that of the blocks that are read.

    Errors: SourceMoved if the file does not hold the planned bytes (any more).
    """
    if chunk.lost:
        yield lost_batch(chunk)
        return
    with _planned(chunk) as fd:
        packed = is_packed(fd, chunk.path)
        _verify(fd, packed, chunk)
        reader = LineReader(chunk, spec, _header(fd, packed, chunk))
        if not packed:
            reader.disguise = lambda: other_than_text(read_at(fd, 0, LONGEST))
        if packed:
            reader.hints = _type_hints(fd, spec)
        if chunk.begin == 0:
            yield from reader.swallowed()
        start, blocks = chunk_blocks(fd, packed, chunk, reader.first, size)
        for block in reader.blocks(_sound(blocks, reader), start):
            yield from reader.records(block)
        if reader.broken:
            detail = f"{reader.broken}; put the whole file back, and it is read again"
            yield bad_batch(chunk, [(reader.at, 0, b"", 0, "broken-file", detail)])
        yield from reader.passed_over()
        _verify(fd, packed, chunk)


@contextmanager
def _planned(chunk: Chunk) -> Iterator[Handle]:
    """The chunk's file, opened. Errors: SourceMoved where none is, SourceError where it may not be read, OSError."""
    try:
        with opened_chunk(chunk) as fd:
            yield fd
    except Outside:
        raise
    except FileNotFoundError as error:
        raise unplaced(chunk.path) from error
    except PermissionError as error:
        raise SourceError(
            f"{chunk.path}: may not be read any more ({error.strerror})",
            remedy="Let the user that runs the join read it, or move it out of the source's folder",
        ) from error


def _verify(fd: Handle, packed: bool, chunk: Chunk) -> None:
    """That the file holds the planned bytes; of a .gz only its head, the rest is checked while unpacking."""
    if not (has_head(fd, packed, chunk.proof) if packed else holds(fd, packed, chunk.proof, chunk.path)):
        raise changed(chunk.path, chunk.proof.offset)


def _sound(blocks: Iterator[bytes], reader: LineReader) -> Iterator[bytes]:
    """Blocks up to where a .gz is damaged."""
    try:
        yield from blocks
    except BrokenFile as error:
        reader.broken = str(error)


class LineReader:
    """Turns blocks of one chunk into records. `at` is how far it has come, `broken` what is wrong with a .gz.

    `hints`: columns whose texts do not say what they are. `disguise`: asked what the bytes are, if they are
    no text, where any of them are none.
    """

    def __init__(self, chunk: Piece, spec: RecordSpec, header: bytes = b"") -> None:
        self.chunk, self.spec, self.broken, self.at = chunk, spec, "", chunk.start
        self.sieve = Sieve(spec.where)
        self.csv = CsvParser(header, chunk.csv, self.sieve) if chunk.csv else None
        self.json = JsonParser(needed(spec), self.sieve)
        inside = [keys for keys in spec.texts if keys != spec.records[: len(keys)]]
        self.texts = {are_elements: JsonTexts(inside if are_elements else spec.texts) for are_elements in (True, False)}
        self.disguise: Callable[[], str] = str
        self.hints = TypeHints()
        self.first = len(self.csv.header) if self.csv else 0

    def blocks(self, blocks: Iterator[bytes], start: int) -> Iterator[Block]:
        """Blocks of whole records."""
        if self.csv and self.csv.form.multiline:
            return records_of(blocks, start, self.csv.form.separator, self.spec.max_record)
        return whole_lines(blocks, start, self.spec.max_record)

    def records(self, block: Block) -> Iterator[pa.RecordBatch]:
        """Records of a block, those of its lines' arrays where the source says that they lie there."""
        if self.spec.records and not self.csv and block.part is None:
            yield from each_element(block, self.spec, self.read)
            self.at = block.offset + len(block.data)
        else:
            yield from self.read(block)

    def read(self, block: Block, are_elements: bool = False) -> Iterator[pa.RecordBatch]:
        """Records of a block, or of elements of its lines' arrays: the good ones, then the bad ones."""
        self.at = block.offset + len(block.data)
        if block.part is not None:
            if self.sieve.quiet:
                return
            row = (block.offset, len(block.data), block.data, block.part, *too_long(self.spec.max_record))
            yield bad_batch(self.chunk, [row])
            return
        lines = split(block)
        screened = screen(lines, self.spec.max_record)
        bad = [(int(lines.start[row]), int(lines.end[row]), *screened[row]) for row in screened]
        bad = [] if self.sieve.quiet else bad
        if screened:
            keep = np.ones(len(lines.end), np.bool_)
            keep[list(screened)] = False
            lines = pick(lines, keep)
        segments, refused, texts = self._parsed(lines, are_elements) if len(lines.end) else ([], {}, lines.text)
        bad += [(int(lines.start[row]), int(lines.end[row]), *why) for row, why in refused.items()]
        for segment in segments:
            found = understand(segment.columns, len(segment.rows), self.spec, self.hints)
            wrong = {int(segment.rows[row]): why for row, why in found.bad.items()}
            bad += [(int(lines.start[row]), int(lines.end[row]), *why) for row, why in wrong.items()]
            if len(found.rows):
                good, misfits = self._fitting(self._good(lines, texts, segment, found))
                rows = segment.rows[found.rows]
                bad += [(int(lines.start[rows[row]]), int(lines.end[rows[row]]), *why) for row, why in misfits.items()]
                yield good
        if any(why in _NO_TEXT for _, _, why, _ in bad) and (kind := self.disguise()):
            bad = [(start, end, why, f"the file is {kind}") for start, end, why, _ in bad]
        if bad:
            yield bad_batch(self.chunk, list(_parts(block, sorted(bad))))

    def _parsed(self, lines: Lines, are_elements: bool) -> tuple[list[Segment], dict[int, tuple[str, str]], Any]:
        """Columns of lines, what is wrong with the others by number, and the payload of each, but of CSV."""
        if not self.csv and self.texts[are_elements].fields:
            return self.texts[are_elements].parse(lines, self.json)
        return *(self.csv or self.json).parse(lines), lines.text

    def swallowed(self) -> Iterator[pa.RecordBatch]:
        """The header as a bad record if others lie in it, or it may be one: else nothing would say it is not read."""
        if self.csv and (why := self._no_header(self.csv)) and not self.sieve.quiet:
            header = Block(0, self.csv.header)
            yield bad_batch(self.chunk, list(_parts(header, [(0, self.first, "bad-csv", why)])))

    def _no_header(self, csv: CsvParser) -> str:
        if csv.swallowed or not csv.header.strip() or self.spec.where is not None:
            return csv.wrong if csv.swallowed else ""
        columns = dict.fromkeys(csv.names, "")
        keys = self.spec.primary_id if self.spec.key else ()
        name = next((name for name in needed(self.spec) if name not in keys and column_of(columns, name) is None), None)
        if name is None:
            return ""
        said = (
            f"the file's first line names no column `{name}`; where it is a record, name the columns in source.columns"
        )
        return csv.wrong or said

    def passed_over(self) -> Iterator[pa.RecordBatch]:
        """A row that says how many records no stream has taken since this was asked last, if any: see `taken_of`."""
        if self.sieve.passed:
            yield bad_batch(self.chunk, [(self.chunk.start, 0, b"", 0, PASSED, str(self.sieve.passed))])
            self.sieve.passed = 0

    def _fitting(self, good: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[int, tuple[str, str]]]:
        """Records whose values fit the output's columns, and what is wrong with the others, by number."""
        wrong = wrong_values(good["payload"], self.spec.typed) if self.spec.typed else {}
        fine = np.ones(good.num_rows, np.bool_)
        fine[list(wrong)] = False
        return good.filter(bool_array(fine)) if wrong else good, wrong

    def _good(self, lines: Lines, texts: Any, segment: Segment, found: Understood) -> pa.RecordBatch:
        rows = segment.rows[found.rows]
        if self.csv:
            payload = self.csv.payload(segment.columns)
            payload = payload if len(payload) == len(rows) else payload.take(int64_array(found.rows))
        else:
            payload = texts if len(rows) == len(texts) else texts.take(int64_array(rows))
        count, begin = len(rows), lines.start[rows]
        times = [pa.nulls(count, _TIME) if time is None else number_array(time, _TIME)
                 for time in (found.event_time, found.primary_time)]  # fmt: skip
        return pa.RecordBatch.from_arrays([
            found.event_id, times[0], found.primary_id, times[1], payload,
            *(pa.nulls(count, SCHEMA.field(name).type) for name in ("reason", "detail", "raw", "part")),
            *_place(self.chunk, count), int64_array(begin + lines.offset), int64_array(lines.end[rows] - begin),
        ], schema=SCHEMA)  # fmt: skip


def _type_hints(fd: Handle, spec: RecordSpec) -> TypeHints:
    try:
        found = type_hints_of(fd)
    except BrokenFile:
        return TypeHints()  # who reads on finds the same, and puts it on record
    return found if spec.bare_times else found.without_times()


def _header(fd: Handle, packed: bool, chunk: Chunk) -> bytes:
    if not chunk.csv or chunk.csv.columns:
        return b""
    if packed:
        try:
            return header_of(packed_blocks(fd, 0, -1, chunk.proof, chunk.path, 1 << 16))
        except BrokenFile:
            return b""  # who reads on finds the same, and puts it on record
    return header_of(plain_blocks(fd, 0, min(HEADER + 1, length_of(fd)), chunk.path, 1 << 16))


def _parts(block: Block, bad: list[tuple[int, int, str, str]]) -> Iterator[tuple[Any, ...]]:
    """Rows of bad lines, long ones in parts."""
    for start, end, reason, detail in bad:
        for part, low in enumerate(range(start, end, RAW_PART)):
            raw = block.data[low : min(low + RAW_PART, end)]
            yield block.offset + low, len(raw), raw, part, reason, detail


def bad_batch(chunk: Piece, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    """Rows of (offset, length, raw, part, reason, detail)."""
    offset, length, raw, part, reason, detail = (list(column) for column in zip(*rows, strict=True))
    count = len(rows)
    empty = [pa.nulls(count, field.type) for field in list(SCHEMA)[:5]]
    why = [text_array(reason, pa.string()), text_array(detail, pa.string())]
    lost = [pa.nulls(count, pa.binary()), pa.nulls(count, pa.int32())]
    columns = [*why, *(lost if chunk.lost else (text_array(raw, pa.binary()), number_array(part, pa.int32())))]
    where = [*_place(chunk, count), int64_array(offset), int64_array(length)]
    return pa.RecordBatch.from_arrays([*empty, *columns, *where], schema=SCHEMA)


def lost_batch(chunk: Piece) -> pa.RecordBatch:
    """The row of what cannot be read any more: all of a chunk, as long as that is known to be."""
    length = max(chunk.end - chunk.start, 0)
    return bad_batch(chunk, [(chunk.start, length, None, None, "source-lost", chunk.lost)])


def _place(chunk: Piece, count: int) -> list[Any]:
    name = chunk.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return [pa.repeat(scalar(text), count) for text in (name, chunk.source_partition)]


def reader(work: Sequence[Sequence[Any]], read: Callable[[Any], Iterator[Any]], each: RecordFn) -> RecordFn:
    """What a task does: `each` to the records that `read` makes of the chunks that its numbers name."""

    def records_of(numbers: Iterator[Any]) -> Iterator[Any]:
        for batch in numbers:
            for task in batch.column(0).to_pylist():
                for chunk in work[task]:
                    yield from read(chunk)

    return lambda numbers: each(records_of(numbers))


def unchanged(batches: Iterator[Any]) -> Iterator[Any]:
    """The records as they are."""
    return batches


def read_numbered(
    name: str,
    source_partition: str,
    spec: RecordSpec,
    numbers: np.ndarray[Any, Any],
    lines: Sequence[bytes],
    hints: TypeHints = TypeHints(),
) -> Iterator[pa.RecordBatch]:
    """Records of some lines, each ended by a newline; columns as RECORDS_DDL, `offset` from `numbers`, `length` 1.

    `name`: where they are, for people; `hints`: columns whose texts do not say what they are. A bad record is
    one row, however long it is.
    """
    starts = np.cumsum([0, *map(len, lines)])
    reader = LineReader(_chunk(name, source_partition, ""), spec)
    reader.hints = hints
    for batch in reader.read(Block(0, b"".join(lines))):
        which = np.searchsorted(starts, to_numpy(batch["offset"]), "right") - 1
        yield _numbered(batch, which, numbers, lines)
    yield from reader.passed_over()


def _numbered(
    batch: pa.RecordBatch, which: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any], lines: Sequence[bytes]
) -> pa.RecordBatch:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if batch["part"].null_count < batch.num_rows:  # bad ones: the whole line in the first of its parts
        first = [number for number, part in enumerate(columns["part"].to_pylist()) if not part]
        columns = {name: column.take(int64_array(first)) for name, column in columns.items()}
        which = which[first]
        columns["raw"] = text_array([lines[number] for number in which], pa.binary())
    columns["offset"] = int64_array(numbers[which])
    columns["length"] = int64_array(np.ones(len(which), np.int64))
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def aside(name: str, source_partition: str, offset: int, length: int, reason: str, detail: str) -> pa.RecordBatch:
    """A row of records that cannot be read: so many (`length`) from an offset on."""
    lost = reason == "source-lost"
    chunk = _chunk(name, source_partition, detail if lost else "")
    return bad_batch(chunk, [(offset, length, None if lost else b"", None if lost else 0, reason, detail)])


def _chunk(name: str, source_partition: str, lost: str) -> Chunk:
    return Chunk(name, name, source_partition, 0, 0, 0, 0, _NO_PROOF, None, lost)
