"""The file system that a table's folder lies on: opened, flushed, and read with few requests. Runs on executors.

One for a store in each process: connections and credentials are kept. Where S3 is, model/places.py says; who asks, what
Amazon's own programs look at. An object store answers once its copies are safe; on a local disk delta-rs and Parquet
writers leave their files in the page cache, and a power cut takes what was acknowledged. A data file never changes, so
what was read of it stays true: a short one on an object store is read whole, once in the life of a process.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from clickjoin.model.places import S3, Store, is_on_s3, store_of

_SECONDS = 30.0
_TRIES = 6


def filesystem(root: str) -> tuple[pafs.FileSystem, str]:
    """The file system of a folder (path or URI), and the folder's path on it. Errors: ValueError for another scheme."""
    if not is_on_s3(root):
        system, path = pafs.FileSystem.from_uri(root)
        return system, str(path)
    return _s3(os.getpid(), *store_of(root)), root.removeprefix(S3).rstrip("/")


def make_folder(system: pafs.FileSystem, path: str) -> None:
    """Make a folder and those above it; an object store has none to make."""
    if isinstance(system, pafs.LocalFileSystem):
        system.create_dir(path, recursive=True)


def _s3(*settings: Any) -> pafs.FileSystem:
    """The file system for a process and what it knows of S3; made once."""
    # Kept at Arrow's module: this one travels to executors by value, and what it kept would travel with it.
    made: dict[Any, pafs.FileSystem] = pafs.__dict__.setdefault("_clickjoin_made", {})
    if settings not in made:
        made[settings] = _made(Store(*settings[1:]))
    return made[settings]


def _made(store: Store) -> pafs.FileSystem:
    more: dict[str, Any] = {"region": store.region} if store.region else {}
    if store.endpoint:
        scheme, address = store.address
        more |= {"endpoint_override": address, "scheme": scheme, "force_virtual_addressing": not store.path_style}
    return pafs.S3FileSystem(
        connect_timeout=_SECONDS,
        request_timeout=_SECONDS,
        retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=_TRIES),
        allow_delayed_open=True,
        **more,
    )


_RECENT = 64  # commits


def local_folder(root: str) -> Path | None:
    """The folder of a table (path or URI); None where it does not lie on a local file system."""
    system, path = filesystem(root)
    return Path(path) if isinstance(system, pafs.LocalFileSystem) else None


def flush(paths: Iterable[Path]) -> None:
    """Return once these files and folders are on disk. Errors: OSError."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def flush_data(root: Path, *names: str) -> None:
    """Return once data files and their folders, up to the table's own, are on disk."""
    flush(root / name for name in names)
    flush(dict.fromkeys(root / folder for name in names for folder in Path(name).parents))


def flush_commit(root: Path, version: int) -> None:
    """Return once a commit is on disk, and the checkpoint that its writer may have made of it."""
    log = root / "_delta_log"
    checkpoint = log / f"{version:020d}.checkpoint.parquet"
    made = [checkpoint, log / "_last_checkpoint"] if checkpoint.exists() else []
    flush([log / f"{version:020d}.json", *(path for path in made if path.exists()), log])


def flush_recent(root: Path, version: int) -> None:
    """Return once the newest commits up to a version are on disk: one of them may be of a process that was killed."""
    log = root / "_delta_log"
    names = (log / f"{number:020d}.json" for number in range(max(version - _RECENT, 0), version + 1))
    flush([*(path for path in names if path.exists()), log])


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
