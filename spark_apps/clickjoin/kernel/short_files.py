"""Data files on an object store, opened with few requests: a short one is read whole, once in the life of a process.

A data file never changes, so what was read of it stays true. Runs on executors, which need no clickjoin.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pyarrow as pa
import pyarrow.fs as pafs

from clickjoin.kernel.filesystem import filesystem

SHORT = 1 << 20  # bytes; longer ones are read by the ranges that are wanted
_KEPT = 64 << 20  # bytes in all
_AT_ONCE = 16  # requests


class _Kept:
    """Files by their paths, those used last."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, pa.Buffer] = OrderedDict()
        self._bytes, self._lock = 0, threading.Lock()

    def get(self, path: str) -> pa.Buffer | None:
        with self._lock:
            if path in self._files:
                self._files.move_to_end(path)
            return self._files.get(path)

    def put(self, path: str, data: pa.Buffer) -> None:
        with self._lock:
            if path not in self._files:
                self._files[path] = data
                self._bytes += data.size
            while self._bytes > _KEPT:
                self._bytes -= self._files.popitem(last=False)[1].size


def open_file(root: str, path: str) -> pa.NativeFile:
    """A file below a folder (path or URI), to read at random. Errors: FileNotFoundError."""
    system, base = filesystem(root)
    place = f"{base}/{path}"
    if isinstance(system, pafs.LocalFileSystem):
        return system.open_input_file(place)
    kept = _kept()
    if (data := kept.get(place)) is None:
        file = system.open_input_file(place)
        if file.size() > SHORT:
            return file
        with file:
            data = file.read_buffer()
        kept.put(place, data)
    return pa.BufferReader(data)


def held(root: str, path: str) -> pa.Buffer | None:
    """What a short file below a folder on an object store holds, where it is at hand."""
    return _kept().get(f"{filesystem(root)[1]}/{path}")


def keep(root: str, path: str, data: pa.Buffer) -> None:
    """Have a short file at hand that was read whole."""
    _kept().put(f"{filesystem(root)[1]}/{path}", data)


def fetch(files: Sequence[tuple[str, str]]) -> None:
    """Have some files (folder, path below it) that lie on an object store at hand, by requests side by side.

    Where many are not, none is fetched: of those not all may be wanted. What is wrong with one, its reader says.
    """
    here = filesystem(files[0][0])[0] if files else None
    if here is None or isinstance(here, pafs.LocalFileSystem):
        return
    missing = [(root, path) for root, path in files if _kept().get(f"{filesystem(root)[1]}/{path}") is None]
    if 1 < len(missing) <= _AT_ONCE:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(_fetch, missing))


def _fetch(file: tuple[str, str]) -> None:
    with suppress(OSError), open_file(*file):
        pass


def _kept() -> _Kept:
    # Kept at Arrow's module: this one travels to executors by value, and what it kept would travel with it.
    return pafs.__dict__.setdefault("_clickjoin_short_files", _Kept())  # type: ignore[no-any-return]
