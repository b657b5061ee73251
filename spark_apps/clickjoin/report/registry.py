"""How the registry is laid out: the timeline of shards, rows and bytes by bucket and shard, from its log alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clickjoin.lake.maintenance import sizes
from clickjoin.registry.boundary import load_boundary
from clickjoin.registry.reshard import Entry, entries

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader

_BUCKETS, _SHARDS = 96, 64


def registry(delta: DeltaReader) -> dict[str, Any]:
    """`buckets`: rows, bytes and files of each, oldest first; `cells`: the same by shard, of the newest buckets;
    `shards` and `timeline`: see shards.
    """
    actions = delta.files("registry")
    cells = []
    if actions.num_rows:
        groups = actions.group_by(["partition.bucket", "partition.shard"])
        sizes = groups.aggregate([("num_records", "sum"), ("size_bytes", "sum"), ("path", "count")])
        cells = [_cell(row) for row in sizes.to_pylist()]
    buckets: dict[str, dict[str, Any]] = {}
    for cell in sorted(cells, key=lambda cell: (cell["bucket"], cell["shard"])):
        whole = buckets.setdefault(cell["bucket"], {"bucket": cell["bucket"], "rows": 0, "bytes": 0, "files": 0})
        for name in ("rows", "bytes", "files"):
            whole[name] += cell[name]
    last = set(list(buckets)[-_BUCKETS:])
    shown = [cell for cell in cells if cell["bucket"] in last and cell["shard"] < _SHARDS]
    return {"buckets": list(buckets.values()), "cells": shown, **shards(delta)}


def _cell(row: dict[str, Any]) -> dict[str, Any]:
    sums = {"rows": row["num_records_sum"] or 0, "bytes": row["size_bytes_sum"] or 0, "files": row["path_count"]}
    return {"bucket": row["partition.bucket"], "shard": int(row["partition.shard"]), **sums}


def shards(delta: DeltaReader) -> dict[str, Any]:
    """`timeline`: since, shards, added_at, void; `shards`: files, rows, bytes and boundary by shard."""
    boundary = load_boundary(delta)
    held = sizes(delta, "registry", by="shard")
    timeline = [
        {"since": e.since.isoformat(), "shards": e.shards, "added_at": e.added_at.isoformat(), "void": e.void}
        for e in entries(delta)
    ]
    numbers = sorted(held, key=int)
    return {
        "timeline": timeline,
        "shards": {
            number: {
                **asdict(held[number]),
                "boundary": boundary[int(number)].isoformat() if int(number) in boundary else None,
            }
            for number in numbers
        },
    }


def dropped(before: DeltaReader, after: DeltaReader) -> list[dict[str, Any]]:
    """Entries in force of one lake's timeline that another has not, as since, shards: what a restore takes back."""
    kept = {(entry.since, entry.shards) for entry in _in_force(after)}
    gone = [entry for entry in _in_force(before) if (entry.since, entry.shards) not in kept]
    return [{"since": entry.since.isoformat(), "shards": entry.shards} for entry in gone]


def _in_force(delta: DeltaReader) -> list[Entry]:
    return [entry for entry in entries(delta) if not entry.void] if delta.exists("shard_timeline") else []
