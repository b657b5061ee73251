"""An object in a store, read by ranges at an address that the driver has signed. Runs on executors, without secrets.

Each request says `If-Match`: what is read is the planned object to its last byte, or nothing. An address allows to read
one object, for some hours.
"""

from __future__ import annotations

import os
import time
import urllib.error
import urllib.request
from collections import OrderedDict
from http.client import HTTPException
from typing import NamedTuple, Protocol

from clickjoin.model.errors import SourceError, SourceMoved, StoreBusy
from clickjoin.model.store_faults import store_fault

_SMALL = 1 << 20  # an object up to this size is read whole at the first look
_LEAST, _MOST = 1 << 16, 8 << 20  # bytes of a request
_HELD = 4  # pieces of an object that are kept
_TRIES, _PAUSE, _SECONDS = 6, 0.2, 60.0


class Signed(NamedTuple):
    """An object's signed address, its ETag as the store gave it, its size in bytes, and whether all of it is wanted."""

    url: str
    etag: str
    size: int
    whole: bool = False


class Ranges(Protocol):
    """What is read by ranges, and is no open file."""

    @property
    def size(self) -> int:
        """Bytes in all."""
        ...

    def pread(self, length: int, offset: int) -> bytes:
        """As os.pread."""
        ...


Handle = int | Ranges  # an open file's descriptor, or what is read by ranges


def pread(file: Handle, length: int, offset: int) -> bytes:
    """Some bytes, as os.pread gives them."""
    return os.pread(file, length, offset) if isinstance(file, int) else file.pread(length, offset)


def length_of(file: Handle) -> int:
    """Bytes in all."""
    return os.fstat(file).st_size if isinstance(file, int) else file.size


class Held:
    """Bytes at hand."""

    def __init__(self, data: bytes) -> None:
        self.data, self.size = data, len(data)

    def pread(self, length: int, offset: int) -> bytes:
        """As os.pread."""
        return self.data[offset : offset + length]


class RemoteFile:
    """An object as a file. `path` is what errors call it.

    Errors of reading: SourceMoved where it is gone or was written again, StoreBusy where the store does not answer,
    SourceError where it refuses.
    """

    def __init__(self, signed: Signed, path: str) -> None:
        self.size, self._signed, self._path = signed.size, signed, path
        self._held: OrderedDict[int, bytes] = OrderedDict()
        self._next, self._ahead = 0, _MOST if signed.whole else _LEAST

    def pread(self, length: int, offset: int) -> bytes:
        """As os.pread. Small reads that follow one another are few requests."""
        end, parts = min(offset + length, self.size), list[bytes]()
        while offset < end:
            start, data = self._piece(offset, end - offset)
            parts.append(data[offset - start : end - start])
            offset += len(parts[-1])
        self._next = offset
        return b"".join(parts)

    def _piece(self, offset: int, length: int) -> tuple[int, bytes]:
        """A piece of the object that holds this byte, and where it begins."""
        for start, data in self._held.items():
            if start <= offset < start + len(data):
                self._held.move_to_end(start)
                return start, data
        start = offset
        if self.size <= (_MOST if self._signed.whole else _SMALL):
            start, length = 0, self.size
        elif offset == self._next:
            length, self._ahead = max(length, self._ahead), min(self._ahead * 2, _MOST)
        self._held[start] = self._ask(start, min(max(length, _LEAST), self.size - start))
        while len(self._held) > _HELD:
            self._held.popitem(last=False)
        return start, self._held[start]

    def _ask(self, offset: int, length: int) -> bytes:
        for attempt in range(_TRIES):
            try:
                return self._once(offset, length)
            except StoreBusy:
                if attempt == _TRIES - 1:
                    raise
                time.sleep(_PAUSE * 2**attempt)
        raise AssertionError

    def _once(self, offset: int, length: int) -> bytes:
        headers = {"Range": f"bytes={offset}-{offset + length - 1}", "If-Match": self._signed.etag}
        asked = urllib.request.Request(self._signed.url, headers=headers)
        try:
            with urllib.request.urlopen(asked, timeout=_SECONDS) as answer:
                data = bytes(answer.read())
        except urllib.error.HTTPError as error:
            with error:  # an answer like any other, to be closed
                raise self._refused(error) from None  # its text may hold the address
        except (OSError, HTTPException) as error:
            raise StoreBusy(f"{self._path}: the store does not answer ({type(error).__name__})") from None
        if len(data) != length:
            raise StoreBusy(f"{self._path}: the store gave {len(data)} bytes of {length} from offset {offset}")
        return data

    def _refused(self, error: urllib.error.HTTPError) -> Exception:
        if error.code in (404, 412, 416):
            what = "is gone" if error.code == 404 else "was written again"
            return SourceMoved(
                f"{self._path}: the object {what} since it was planned",
                remedy="Run the batch again: it is counted as lost, and what lies there now is read",
            )
        text = error.read(4096).decode("utf-8", "replace")
        fault = store_fault(text) or store_fault(f"STATUS CODE: {error.code}")
        if error.code >= 500 or error.code == 429 or (fault and fault.passes):
            return StoreBusy(f"{self._path}: {fault.why if fault else f'the store fails ({error.code})'}")
        why = fault.why if fault else f"the store refuses it ({error.code})"
        return SourceError(f"{self._path}: {why}", remedy=fault.remedy if fault else "See the store's log")
