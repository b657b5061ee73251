"""Trimming the journal and the metrics: old batches go, but never the snapshots that positions are rebuilt from."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from clickjoin.dispatcher.journal import SNAPSHOT_EVERY

if TYPE_CHECKING:
    from clickjoin.engines.tables_port import Tables

KEPT_BATCHES = 3 * SNAPSHOT_EVERY


def old_batches(delta: Tables, name: str, when: str, before: datetime) -> dict[tuple[str, str], int]:
    """By replica and sequence: the first batch to keep. `when`: the column that says how old a row is."""
    found: dict[tuple[str, str], int] = {}
    newest: dict[tuple[str, str], int] = {}
    for row in delta.read(name, columns=["replica", "sequence", "batch", when]).to_pylist():
        key = (row["replica"], row["sequence"])
        newest[key] = max(newest.get(key, 0), row["batch"])
        if row[when] < before:
            found[key] = max(found.get(key, 0), row["batch"] + 1)
    return {
        key: min(first, newest[key] - KEPT_BATCHES)
        for key, first in found.items()
        if min(first, newest[key] - KEPT_BATCHES) > 1
    }


def trim(delta: Tables, name: str, when: str, before: datetime, *, dry_run: bool) -> int:
    """Drop rows of batches older than a moment from `journal` or `metrics`; returns how many batches or rows."""
    old = old_batches(delta, name, when, before)
    if dry_run:
        return sum(first - 1 for first in old.values())
    return sum(delta.delete(name, _below(*key, first)) for key, first in sorted(old.items()))


def _below(replica: str, sequence: str, first: int) -> str:
    return f"replica = '{replica}' AND sequence = '{sequence}' AND batch < {first}"
