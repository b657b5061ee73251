"""How the registry is laid out: rows and bytes by bucket and shard, from its log alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickjoin.report.shards import shards

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader

_BUCKETS, _SHARDS = 96, 64


def registry(delta: DeltaReader) -> dict[str, Any]:
    """`buckets`: rows, bytes and files of each, oldest first; `cells`: the same by shard, of the newest buckets;
    `shards` and `timeline`: see report.shards.
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
