"""The timeline of shards, and what each shard holds: read from the logs alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clickjoin.lake.maintenance import sizes
from clickjoin.registry.boundary import load_boundary
from clickjoin.registry.reshard import entries

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader


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
