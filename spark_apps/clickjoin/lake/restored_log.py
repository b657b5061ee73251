"""The log of a restored table: no version that was ever committed in its place can be committed again.

A process that slept through a restore holds a handle at some version of the table that is gone, and commits as the next
one. In a log that ends earlier that would leave a gap, or be taken for a version that it is not. So the restored log
goes on after the newest version that the old one had: those between are commits that no writer and no reader can get
past, and after them stands a checkpoint of what was restored. Readers start at the checkpoint and never see them; a
handle of the old table finds its next version taken and its table changed beyond use.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from clickjoin.kernel.filesystem import local_folder
from clickjoin.lake.location import Location, location
from clickjoin.lake.readable import readable
from clickjoin.lake.snapshot_files import LOG
from clickjoin.lake.store_options import store_options
from clickjoin.model.ids import MICROS
from clickjoin.model.places import folder_of

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader

UNKNOWN = 1_000  # versions that are taken where nothing of the old log is left to tell its newest
_FEATURE = "clickjoinRestored"  # a table feature that nobody has
_WORKERS = 16
_LINKS = 10_000  # names a file may have: file systems allow 65,000 and fewer


def continue_after(root: str, name: str, newest: int, at: int) -> int:
    """Have a restored table's log go on after version `newest`; returns the version that it is at then.

    `at`: microseconds since 1970, when. The versions up to the restored one stay as they are, for plans that name them.
    """
    with readable(root, name):
        table = DeltaTable(folder_of(root, name), storage_options=store_options(root))
        table.create_checkpoint()
    folder = f"{folder_of(root, name)}/{LOG}"
    log, held = location(folder), int(table.version())
    last = max(newest, held) + 2
    info = {"timestamp": at // 1000, "operation": "RESTORE", "operationParameters": {"version": str(held)}}
    feature = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [_FEATURE], "writerFeatures": [_FEATURE]}
    _fill(log, folder, range(held + 1, last), _lines({"commitInfo": info}, {"protocol": feature}))
    checkpoint = f"{last:020}.checkpoint.parquet"
    data = log.read(f"{held:020}.checkpoint.parquet") or b""  # which stays: it may be what version `held` is read by
    log.write(checkpoint, data)
    log.write(f"{last:020}.json", _lines({"commitInfo": info}))
    # Not that of delta-rs, which writes none where the version had its checkpoint already.
    rows = pq.read_metadata(pa.BufferReader(data)).num_rows
    log.write("_last_checkpoint", json.dumps({"version": last, "size": rows}).encode())
    return last


def go_on_after(delta: DeltaReader, name: str, newest: int, now: datetime) -> None:
    """Have a rebuilt table's log go on after version `newest` of the table that it replaces."""
    continue_after(delta.path("").rstrip("/"), name, newest, int(now.timestamp() * MICROS))
    delta.forget(name)


def is_filler(entry: bytes) -> bool:
    """Whether an entry of a log stands for a version that a restore took away."""
    return _FEATURE.encode() in entry[:1000]


def _lines(*actions: dict[str, object]) -> bytes:
    return "".join(f"{json.dumps(action, ensure_ascii=False)}\n" for action in actions).encode()


def _fill(log: Location, place: str, versions: range, data: bytes) -> None:
    """Write the same entry for each version: on a local disk as links to a few files."""
    names, folder = [f"{version:020}.json" for version in versions], local_folder(place)
    if folder is None:
        with ThreadPoolExecutor(_WORKERS) as pool:
            list(pool.map(lambda name: log.write(name, data), names))
        return
    first = folder
    for at, file in enumerate(folder / name for name in names):
        if at % _LINKS and _linked(first, file):
            continue
        file.write_bytes(data)
        first = file


def _linked(first: Path, file: Path) -> bool:
    try:
        os.link(first, file)
    except OSError:  # a file system without links
        return False
    return True
