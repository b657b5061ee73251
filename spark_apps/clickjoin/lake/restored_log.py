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
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from deltalake import DeltaTable

from clickjoin.lake.readable import readable
from clickjoin.lake.snapshot_files import LOG, look
from clickjoin.model.ids import MICROS

if TYPE_CHECKING:
    from clickjoin.lake.delta_tables import DeltaTables

UNKNOWN = 1_000  # versions that are taken where nothing of the old log is left to tell its newest
_FEATURE = "clickjoinRestored"  # a table feature that nobody has
_LINKS = 10_000  # names a file may have: file systems allow 65,000 and fewer


def continue_after(root: str, name: str, newest: int, at: int) -> int:
    """Have a restored table's log go on after version `newest`; returns the version that it is at then.

    `at`: microseconds since 1970, when. The versions up to the restored one stay as they are, for plans that name them.
    """
    with readable(root, name):
        table = DeltaTable(f"{root}/{name}")
        table.create_checkpoint()
    log, held = Path(root, name, LOG), int(table.version())
    last = max(newest, held) + 2
    info = {"timestamp": at // 1000, "operation": "RESTORE", "operationParameters": {"version": str(held)}}
    feature = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [_FEATURE], "writerFeatures": [_FEATURE]}
    _fill(log, range(held + 1, last), _lines({"commitInfo": info}, {"protocol": feature}))
    checkpoint = log / f"{last:020}.checkpoint.parquet"
    (log / f"{held:020}.checkpoint.parquet").replace(checkpoint)
    (log / f"{last:020}.json").write_text(_lines({"commitInfo": info}), encoding="utf-8")
    # Not that of delta-rs, which writes none where the version had its checkpoint already.
    hint = {"version": last, "size": pq.read_metadata(checkpoint).num_rows}
    (log / "_last_checkpoint").write_text(json.dumps(hint), encoding="utf-8")
    return last


def go_on_after(delta: DeltaTables, name: str, old: str | None, now: datetime) -> None:
    """Have a rebuilt table's log go on after that of the table that it replaces, which was put aside at `old`."""
    root, seen = delta.path("").rstrip("/"), look(*old.rsplit("/", 1)) if old else None
    newest = seen.version if seen else delta.version(name) + UNKNOWN
    continue_after(root, name, newest, int(now.timestamp() * MICROS))
    delta.forget(name)


def _lines(*actions: dict[str, object]) -> str:
    return "".join(f"{json.dumps(action)}\n" for action in actions)


def _fill(log: Path, versions: range, text: str) -> None:
    first = log
    for at, version in enumerate(versions):
        file = log / f"{version:020}.json"
        if at % _LINKS and _linked(first, file):
            continue
        file.write_text(text, encoding="utf-8")
        first = file


def _linked(first: Path, file: Path) -> bool:
    try:
        os.link(first, file)
    except OSError:  # a file system without links
        return False
    return True
