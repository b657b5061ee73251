"""CRC-32 of whole columns of ids: the same numbers as model.ids.crc_of, without a call for each. Runs on executors.

CRC-32 is linear: that of a text is the one of as many zero bytes, XOR what each byte changes in it, which depends on
the byte and on how many follow it alone. So a table for each distance from the end is enough.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Crcs = npt.NDArray[np.uint32]

_ROWS = 8192  # at a time: what is looked up stays in the processor's cache
_LONG = 96  # mean bytes of an id from which zlib's own loop is faster
_BYTE, _SHIFT = np.uint32(255), np.uint32(8)


def crcs_of(ids: pa.ChunkedArray) -> Crcs:
    """CRC-32 of each id's UTF-8 bytes. Column in: string, without nulls."""
    parts = [_of_chunk(chunk) for chunk in ids.chunks if len(chunk)]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint32)


def _of_chunk(ids: Any) -> Crcs:
    _, edges, data = ids.buffers()
    edges = np.frombuffer(edges, np.int32)[ids.offset : ids.offset + len(ids) + 1].astype(np.int64)
    if edges[-1] - edges[0] > _LONG * len(ids):
        return np.fromiter((zlib.crc32(text.encode()) for text in ids.to_pylist()), np.uint32, len(ids))
    data = np.frombuffer(data or b"", np.uint8)
    longest = int(np.diff(edges).max())
    tables, zeros = _tables(longest), np.array([zlib.crc32(bytes(length)) for length in range(longest + 1)], np.uint32)
    found = np.empty(len(ids), np.uint32)
    for low in range(0, len(ids), _ROWS):
        some = edges[low : low + _ROWS + 1]
        found[low : low + _ROWS] = _of_rows(data, some[:-1], some[1:], tables, zeros)
    return found


def _of_rows(data: npt.NDArray[np.uint8], starts: Ints, ends: Ints, tables: list[Crcs], zeros: Crcs) -> Crcs:
    order = np.argsort(starts - ends, kind="stable")  # the longest first
    short, last = (starts - ends)[order], ends[order] - 1
    crcs = zeros[-short]
    for behind in range(-int(short[0])):
        count = int(np.searchsorted(short, -behind))  # so many have a byte that far from their end
        crcs[:count] ^= tables[behind].take(data.take(last[:count] - behind))
    found = np.empty(len(order), np.uint32)
    found[order] = crcs
    return found


def _tables(longest: int) -> list[Crcs]:
    """What a byte changes, by how many bytes follow it."""
    zero = zlib.crc32(b"\0")
    tables = [np.array([zlib.crc32(bytes([byte])) ^ zero for byte in range(256)], np.uint32)]
    for _ in range(longest - 1):
        tables.append(tables[-1] >> _SHIFT ^ tables[0][tables[-1] & _BYTE])
    return tables
