"""The timeline of shards, and what each shard holds: read from the logs alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clickjoin.lake.maintenance import sizes
from clickjoin.registry.boundary import load_boundary
from clickjoin.registry.reshard import Entry, entries

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


def dropped(before: DeltaReader, after: DeltaReader) -> list[dict[str, Any]]:
    """Entries in force of one lake's timeline that another has not, as since, shards: what a restore takes back."""
    kept = {(entry.since, entry.shards) for entry in _in_force(after)}
    gone = [entry for entry in _in_force(before) if (entry.since, entry.shards) not in kept]
    return [{"since": entry.since.isoformat(), "shards": entry.shards} for entry in gone]


def _in_force(delta: DeltaReader) -> list[Entry]:
    return [entry for entry in entries(delta) if not entry.void] if delta.exists("shard_timeline") else []
