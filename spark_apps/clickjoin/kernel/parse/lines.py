"""From a chunk's bytes to blocks of whole lines, in bounded memory. Runs on executors.

A line ends in a newline; CR before it and space or tab around it belong to no record, and blank lines are none.
Here too is why a record is quarantined, and what is left of records that are read again after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import Array, bool_array, int64_array, mask, scalar, to_numpy
from clickjoin.kernel.file_bytes import packed_blocks, plain_blocks, read_at
from clickjoin.kernel.remote_file import Handle, length_of
from clickjoin.kernel.types import RecordFn
from clickjoin.model.field_path import parse_path

if TYPE_CHECKING:
    import numpy.typing as npt

    from clickjoin.kernel.chunk import Chunk

    Ints = npt.NDArray[np.int64]

TOO_LONG = "too-long"  # the reason that hangs on a limit alone
RAW_PART = 4 << 20  # bytes of a bad record in one row
BOM = b"\xef\xbb\xbf"
LONGEST = 1 << 30  # what Arrow's 32-bit offsets can hold with room to spare


class Block(NamedTuple):
    """Bytes from `offset` on: whole lines, or part number `part` of one line that is too long.

    `ends`: where records end in it, if that is not with each line.
    """

    offset: int
    data: bytes
    part: int | None = None
    ends: Ints | None = None


class Lines(NamedTuple):
    """The lines of a block that are not blank. Lengths n, the same for all.

    `start`, `end`: within `data`, with line ending. `whole`: the line as it stands (binary-safe string array),
    `text`: without what belongs to no record.
    """

    offset: int
    data: bytes
    start: Ints
    end: Ints
    whole: Any
    text: Any


class Segment(NamedTuple):
    """Columns of some lines: their numbers, and by name an array of text, integers or floats; missing ones are null."""

    rows: Ints
    columns: Mapping[str, Any]


def column_of(columns: Mapping[str, Any], name: str) -> Any:
    """A column by its name, which in CSV may need no backticks; None where there is none."""
    if name in columns or "`" not in name:
        return columns.get(name)
    path = parse_path(name)
    return columns.get(str(path[0])) if len(path) == 1 else None


def boundary(fd: Handle, at: int, start: int, end: int) -> int:
    """The first beginning of a line at or after `at`, in lines [start, end)."""
    if at <= start or at >= end:
        return min(max(at, start), end)
    at -= 1
    while at < end:
        block = read_at(fd, at, min(1 << 18, end - at))
        found = block.find(b"\n")
        if found >= 0 or not block:
            return at + found + 1 if block else end
        at += len(block)
    return end


def chunk_blocks(fd: Handle, packed: bool, chunk: Chunk, first: int, size: int) -> tuple[int, Iterator[bytes]]:
    """Where a chunk's first record begins, and its bytes in blocks. `first`: where the file's header ends."""
    start = max(chunk.start, first)
    if packed:
        return start, packed_blocks(fd, start, chunk.end, chunk.proof, chunk.path, size)
    end = chunk.end if chunk.end >= 0 else length_of(fd)
    stop = end if chunk.end < 0 else chunk.stop
    low, high = boundary(fd, chunk.begin, start, end), boundary(fd, stop, start, end)
    return low, plain_blocks(fd, low, high, chunk.path, size)


def whole_lines(blocks: Iterable[bytes], offset: int, longest: int) -> Iterator[Block]:
    """Blocks of whole lines, and those longer than `longest` in parts; never holds more than a block and one line."""
    longest = min(longest, LONGEST)
    held, part = b"", -1  # part: number of the next part of a line that is too long, -1 outside of one
    for block in blocks:
        held = held + block if held else block
        if part >= 0:
            pieces, part = _parts(held, offset, part)
            yield from pieces
            used = sum(len(piece.data) for piece in pieces)
            held, offset = held[used:], offset + used
        if part < 0:
            last = held.rfind(b"\n") + 1
            if last:
                yield Block(offset, held[:last])
            held, offset = held[last:], offset + last
            part = 0 if len(held) > longest else -1
    if part < 0 and held:
        yield Block(offset, held)
    if part >= 0:
        for at in range(0, len(held), RAW_PART):
            yield Block(offset + at, held[at : at + RAW_PART], part + at // RAW_PART)


def _parts(held: bytes, offset: int, part: int) -> tuple[list[Block], int]:
    """The parts of one line that are complete (of full length, or with the line's end), and the next one's number."""
    end = held.find(b"\n") + 1
    stop = end or len(held) // RAW_PART * RAW_PART
    places = range(0, stop, RAW_PART)
    pieces = [Block(offset + at, held[at : min(at + RAW_PART, stop)], part + at // RAW_PART) for at in places]
    return pieces, -1 if end else part + len(pieces)


def line_ends(data: bytes) -> Ints:
    """Ends of the lines of some bytes; the last line may have no newline."""
    ends: Ints = np.flatnonzero(np.frombuffer(data, np.uint8) == 10) + 1
    return np.append(ends, len(data)) if data and not data.endswith(b"\n") else ends


def split(block: Block) -> Lines:
    """The lines of a block that are not blank, or its records."""
    data = block.data
    ends = line_ends(data) if block.ends is None else block.ends
    edges = np.concatenate([np.zeros(1, np.int64), ends])
    offsets = edges.astype(np.int32)
    if block.offset == 0 and data.startswith(BOM):
        offsets[0] = len(BOM)
    whole = pa.StringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(data))
    text = pc.ascii_trim(whole, " \t\r\n")
    filled = to_numpy(pc.binary_length(text)) > 0
    lines = Lines(block.offset, data, edges[:-1], edges[1:], whole, text)
    return lines if filled.all() else pick(lines, filled)


def pick(lines: Lines, keep: npt.NDArray[np.bool_]) -> Lines:
    """Some of the lines, by mask."""
    kept = bool_array(keep)
    return lines._replace(
        start=lines.start[keep], end=lines.end[keep], whole=lines.whole.filter(kept), text=lines.text.filter(kept)
    )  # fmt: skip


def rows_of(lines: Lines, byte: int) -> list[int]:
    """Numbers of the lines that hold a byte."""
    return rows_at(lines, np.flatnonzero(np.frombuffer(lines.data, np.uint8) == byte))


def rows_at(lines: Lines, places: Ints) -> list[int]:
    """Numbers of the lines that cover these places in `data`; places in blank lines are in none."""
    rows = np.searchsorted(lines.end, places, side="right")
    inside = rows < len(lines.end)
    rows, places = rows[inside], places[inside]
    return [int(row) for row in np.unique(rows[places >= lines.start[rows]])]


def screen(lines: Lines, longest: int) -> dict[int, tuple[str, str]]:
    """Lines that no parser should see: number to reason and detail."""
    bytes_ = np.frombuffer(lines.data, np.uint8)
    bad: dict[int, tuple[str, str]] = {}
    if not _valid(lines.whole):
        for row in rows_at(lines, np.flatnonzero(bytes_ >= 0x80)):
            at = _utf8_error(lines.whole[row].as_buffer().to_pybytes())
            if at is not None:
                bad[row] = ("invalid-utf8", f"byte {at} of the line is not UTF-8; let the producer write UTF-8")
    if b"\0" in lines.data:
        for row in rows_of(lines, 0):
            bad[row] = ("nul-byte", "the line holds a NUL byte, as after a crash or a bad copy; write the record again")
    size = lines.end - lines.start - (bytes_[lines.end - 1] == 10)
    for row in np.flatnonzero(size > longest).tolist():
        bad[row] = too_long(longest)
    return bad


def too_long(longest: int) -> tuple[str, str]:
    """Reason and detail of a record that is longer than `longest` bytes."""
    return TOO_LONG, f"the record is longer than {longest} bytes; raise limits.max_record or shorten the record"


def _valid(array: Any) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _utf8_error(line: bytes) -> int | None:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None


REASONS = {
    "broken-json": "the line is not one JSON object, or names a needed key twice; write one object a line",
    "not-an-object": "the line is JSON, but no object; write one object a line",
    "invalid-utf8": "the line is not UTF-8; let the producer write UTF-8",
    "nul-byte": "the line holds a NUL byte, as after a crash of the machine or a bad copy; write the record again",
    TOO_LONG: "the record is longer than limits.max_record; raise that limit or shorten the record",
    "missing-id": "the event id is missing, null, empty or blank; give every record an id",
    "wrong-type": "an id is no string or whole number, or a time no text or number; write it as one",
    "id-too-long": "the event id is longer than 1024 bytes; shorten it",
    "no-time-in-id": "the event id does not hold its time in the configured form; fix the id or `event_time`",
    "bad-time": "the column of the event time is missing, empty or no time; write ISO 8601 or a number since 1970",
    "impossible-time": "a time is before limits.earliest or after now plus limits.max_skew; fix the clock",
    "bad-primary-id": "the primary event's id is missing, empty, too long, or its time cannot be derived; fix it",
    "bad-csv": "the line has another number of fields than the header, unbalanced quotes or a lone CR; fix the line",
    "tombstone": "the message has no value: it deletes its key in a compacted topic; write a value, or leave it",
    "empty-value": "the value of the message is empty; write a record",
    "wrong-value": "a value does not fit its column, and output.strict is set; fix the record, or output.columns",
    "settings-changed": "it was bad by limits or output.strict as they were before; export it as a new file",
    "broken-file": "the packed file ends early or is damaged; put the whole file back, it is then read again",
    "unclear-rewrite": "a version of a table rewrote rows whose former files are gone; those known count as repeats",
    "source-lost": "what was planned is in no file, table or topic any more; a file that is put back is read then",
}


CHANGED, LOST = "settings-changed", "source-lost"
# Stands for records that no stream's `where` takes: a row of so many as its detail says, which goes to no table.
PASSED = "passed-over"


def taken_of(records: pa.Table) -> tuple[pa.Table, int]:
    """Records without the rows that stand for those passed over, and how many those are."""
    is_passed = mask(pc.equal(records["reason"], scalar(PASSED)))
    if not is_passed.any():
        return records, 0
    counts = records.filter(bool_array(is_passed))["detail"].to_pylist()
    return records.filter(bool_array(~is_passed)), sum(map(int, counts))


def only_missing(landed: Mapping[str, Array]) -> RecordFn:
    """What a task does with the records that it reads; see `without_landed`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from without_landed(pa.Table.from_batches([batch]), landed).to_batches()

    return run


def without_landed(records: pa.Table, landed: Mapping[str, Array]) -> pa.Table:
    """Records that have not landed, each as a bad one: one that is good by now is so by other settings.

    `landed`: by partition the offsets that have, sorted. Columns in and out: those of sources.port.RECORDS_DDL.
    """
    keep = mask(pc.equal(records["reason"], scalar(LOST))) | ~_are_landed(records, landed)
    rest = records.filter(bool_array(keep))
    good = pc.is_null(rest["reason"])
    raw = pc.coalesce(rest["raw"], rest["payload"].cast(rest["raw"].type))
    rest = rest.set_column(rest.schema.get_field_index("raw"), "raw", raw)
    for name, value in (("reason", CHANGED), ("detail", REASONS[CHANGED])):
        column = pc.if_else(good, scalar(value), rest[name])
        rest = rest.set_column(rest.schema.get_field_index(name), name, column)
    return rest


def _are_landed(records: pa.Table, landed: Mapping[str, Array]) -> Array:
    parts = to_numpy(pc.fill_null(records["part"].cast(pa.int64()), int64_array([0])[0]))
    begins = to_numpy(records["offset"].cast(pa.int64())) - parts * RAW_PART
    found = np.zeros(records.num_rows, np.bool_)
    partitions = records["source_partition"].combine_chunks().dictionary_encode()
    which = to_numpy(partitions.indices)
    for number, name in enumerate(partitions.dictionary.to_pylist()):
        at = np.flatnonzero(which == number)
        found[at] = np.isin(begins[at], landed.get(name, np.zeros(0, np.int64)))
    return found
