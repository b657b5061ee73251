"""Which of some ids are in some files of claims, whatever their times: by the files' filters, then by the files.

A filter lies beside its file and holds the hashes of its ids, so that a fresh id has no old file opened. They are of 64
bits, sorted: the first bits say in which of 2^n groups of about 32, the next 32 are kept. So a fresh id is taken for
one of a file's about once in 10^8 looks; what is taken for one is looked up in the file itself, always: a filter only
ever spares a look. Four bytes an id, in a file that is mapped, and not held. Runs on executors.
"""

from __future__ import annotations

import os
import struct
import tempfile
import uuid
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from clickjoin.kernel.arrays import int64_array
from clickjoin.kernel.filesystem import filesystem, make_folder
from clickjoin.kernel.parquet_rows import ids_near, read_file

FOLDER = "_ids"  # below the registry's: what begins with an underscore is none of Delta's data
_COPIES = 4 << 30  # bytes of filters that a process keeps of an object store's
_PART = 32 << 20  # bytes of a request
FEWEST = 1_000  # ids: a shorter file is as soon read itself
_A_GROUP = 32
_HEAD = "<8sIIQ"  # magic, bits of a group's number, CRC-32 of what follows, ids; as text, for it travels to executors
_MAGIC = b"cj-ids-1"
_SLOT = 8  # bits of a slot's number within its group
_BIT = (128 >> np.arange(8)).astype(np.uint8)  # as packbits lays them
_ODD = np.uint64(0x9E3779B97F4A7C15)


class IdFilter(NamedTuple):
    """Hashes of a file's ids: where each group begins (one more than there are groups), and 32 bits of each.

    `slots`: of each 256th of a group, a bit that says whether an id lies there. Made when a filter is loaded, and
    held: at most a byte an id. Most fresh ids meet a slot without one, and touch nothing else.
    """

    starts: np.ndarray[Any, Any]
    rest: np.ndarray[Any, Any]
    slots: np.ndarray[Any, Any]

    def may_hold(self, hashes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Which of some ids, by their hashes, can be in the file."""
        group, wanted = _split(hashes, _bits(self.starts))
        slot = (group << _SLOT) | (wanted >> (32 - _SLOT))
        taken = np.flatnonzero(self.slots[slot >> 3] & _BIT[slot & 7])
        found = np.zeros(len(hashes), np.bool_)
        found[taken] = self._holds(group[taken], wanted[taken])
        return found

    def _holds(self, group: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        low, end = (self.starts[group + side].astype(np.int64) for side in (0, 1))
        last, high = max(len(self.rest) - 1, 0), end
        for _ in range(int((end - low).max(initial=0)).bit_length()):  # in all groups at once, by halves
            middle = (low + high) >> 1
            less = (middle < high) & (self.rest[np.minimum(middle, last)] < wanted)
            low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
        inside = low < end
        found = np.zeros(len(group), np.bool_)
        found[inside] = self.rest[low[inside]] == wanted[inside]
        return found


def hashes_of(ids: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """64 bits for each id, the same in every process, at any time: files hold them."""
    whole = (ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids).cast(pa.large_string())
    found = np.zeros(len(whole), np.uint64)
    if not len(whole):
        return found
    _, at, text = whole.buffers()
    ends = np.frombuffer(at, np.int64)[whole.offset : whole.offset + len(whole) + 1]
    bytes_, lengths = np.frombuffer(text or b"", np.uint8), np.diff(ends)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        padded = np.zeros((len(rows), max(-(-length // 8) * 8, 8)), np.uint8)
        padded[:, :length] = bytes_[ends[rows][:, None] + np.arange(length)]
        value = np.full(len(rows), length, np.uint64)
        for word in padded.view("<u8").T:
            value = _mixed(value ^ word)
        found[rows] = value
    return found


def _mixed(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Each bit of a number spread over all of it (the finisher of splitmix64)."""
    value = value + _ODD
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray[Any, Any] = value ^ (value >> np.uint64(31))
    return mixed


def _split(hashes: np.ndarray[Any, Any], bits: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    group = (hashes >> np.uint64(1)) >> np.uint64(63 - bits)
    return group.astype(np.int64), ((hashes << np.uint64(bits)) >> np.uint64(32)).astype(np.uint32)


def packed(hashes: np.ndarray[Any, Any], file: str = "") -> bytes:
    """The filter of a file with ids of these hashes, as it is stored; no other file's is taken for it."""
    bits = max(len(hashes) // _A_GROUP, 1).bit_length() - 1
    group, rest = _split(np.sort(hashes), bits)
    starts = np.searchsorted(group, np.arange((1 << bits) + 1)).astype("<u4")
    body = starts.tobytes() + rest.astype("<u4").tobytes()
    return struct.pack(_HEAD, _MAGIC, bits, _checksum(body, file), len(hashes)) + body


def _checksum(body: Any, file: str) -> int:
    return zlib.crc32(body, zlib.crc32(place_of(file).encode()))


def unpacked(data: Any, file: str = "") -> IdFilter | None:
    """The filter of a file as it was stored; None where it is not whole, or another file's."""
    raw = memoryview(data)
    size = struct.calcsize(_HEAD)
    if len(raw) < size:
        return None
    magic, bits, crc, count = struct.unpack(_HEAD, raw[:size])
    body = raw[size:]
    if magic != _MAGIC or len(body) != 4 * ((1 << bits) + 1 + count) or _checksum(body, file) != crc:
        return None
    numbers = np.frombuffer(body, "<u4")
    starts, rest = numbers[: (1 << bits) + 1], numbers[(1 << bits) + 1 :]
    return IdFilter(starts, rest, _slots(starts, rest))


def _bits(starts: np.ndarray[Any, Any]) -> int:
    return (len(starts) - 1).bit_length() - 1


def _slots(starts: np.ndarray[Any, Any], rest: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    slots = np.zeros((len(starts) - 1) << _SLOT, np.bool_)
    group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    slots[(group << _SLOT) | (rest >> (32 - _SLOT))] = True
    return np.packbits(slots)


def place_of(file: str) -> str:
    """Where the filter of a data file lies, both below the registry's folder."""
    return f"{FOLDER}/{file.rpartition('/')[2]}.ids"


def load(root: str, file: str) -> IdFilter | None:
    """The filter of a data file, mapped; None where there is none that is whole. Kept while the process lives."""
    system, base = filesystem(root)
    name = f"{base}/{place_of(file)}"
    # Kept at Arrow's module: this one travels to executors by value, and what it kept would travel with it.
    known: dict[Any, IdFilter] = pafs.__dict__.setdefault("_clickjoin_id_filters", {})
    local = isinstance(system, pafs.LocalFileSystem)
    key = _version(name) if local else name
    if key in known:
        return known[key]
    try:
        found = unpacked(np.memmap(name, np.uint8, "r") if local else _copied(system, name), file)
    except (OSError, ValueError):  # an empty file cannot be mapped
        return None
    if found is None:
        return None
    held = list(known.items())  # other threads add to it
    while not local and held and sum(one.rest.nbytes for _, one in held) > _COPIES:
        known.pop(held.pop(0)[0], None)  # the oldest: its file may have been compacted away
    known[key] = found
    return found


def _version(name: str) -> tuple[str, int, int, int] | None:
    """A file as it lies there now: one that someone writes over in its place is another, and is checked again."""
    try:
        seen = os.stat(name)  # noqa: PTH116 - names are Arrow's
    except OSError:
        return None
    return name, seen.st_ino, seen.st_size, seen.st_mtime_ns


def _copied(system: pafs.FileSystem, name: str) -> Any:
    """A file of an object store, in a file without a name of this machine's, mapped: it goes with the process."""
    with system.open_input_stream(name) as opened, tempfile.TemporaryFile() as copy:
        while part := opened.read(_PART):
            copy.write(part)
        copy.flush()
        return np.memmap(copy, np.uint8, "r")


def store(root: str, file: str, hashes: np.ndarray[Any, Any]) -> None:
    """Write the filter of a data file, whole or not at all; another process may write the same."""
    system, base = filesystem(root)
    make_folder(system, f"{base}/{FOLDER}")
    place = f"{base}/{place_of(file)}"
    local = isinstance(system, pafs.LocalFileSystem)
    partial = f"{base}/{FOLDER}/.{uuid.uuid4()}" if local else place
    with system.open_output_stream(partial) as out:
        out.write(packed(hashes, file))
    if local:
        os.replace(partial, place)  # noqa: PTH105 - names are Arrow's


_IDS = pa.schema([("event_id", pa.string())])


class Found(NamedTuple):
    """Ids that are there; how many files were read for it; ids that a filter named, and that were not in its file."""

    ids: pa.Array
    files_read: int
    false_positives: int


def ids_among(root: str, files: Sequence[str], ids: pa.Array, readers: int = 2) -> Found:
    """Which of some distinct ids are in some files below a folder. Errors: FileNotFoundError where one has gone."""
    hashes = hashes_of(ids)
    order = np.argsort(hashes)  # a filter's pages are then touched in their order
    ids, hashes = ids.take(int64_array(order)), hashes[order]
    with ThreadPoolExecutor(readers) as pool:
        parts = list(pool.map(lambda file: _in_file(root, file, ids, hashes), files))
    held = [part.ids for part in parts if len(part.ids)]
    found = pc.unique(pa.chunked_array(held, pa.string()))
    return Found(found, sum(part.files_read for part in parts), sum(part.false_positives for part in parts))


def _in_file(root: str, file: str, ids: pa.Array, hashes: np.ndarray[Any, Any]) -> Found:
    known = load(root, file)
    if known is None:
        return _in_new_file(root, file, ids)
    maybe = ids.take(int64_array(np.flatnonzero(known.may_hold(hashes))))
    if not len(maybe):
        return Found(maybe, 0, 0)
    # The file alone says what is claimed, never its filter.
    held = ids_near(root, file, maybe)
    found = pc.unique(held.filter(pc.is_in(held, value_set=maybe)))
    return Found(found, 1, len(maybe) - len(found))


def _in_new_file(root: str, file: str, ids: pa.Array) -> Found:
    held = read_file(root, file, _IDS)["event_id"]
    if len(held) >= FEWEST:
        with suppress(OSError):  # a lake that is only read, a disk that is full: the file itself is there
            store(root, file, hashes_of(held))
    return Found(pc.unique(held.filter(pc.is_in(held, value_set=ids))), 1, 0)
