"""How far back the registry and the event store have to reach: decided from facts alone, as frozen data. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from clickjoin.model.ids import bucket_at, bucket_start

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake.maintenance import Size


@dataclass(frozen=True)
class Facts:
    """What GC decides from. Times are event times, but for `now` and `unsettled`.

    `newest`: newest claim; `waiting`: oldest event that waits for its primary; `wanted`: oldest primary time that one
    of them can name; `unsettled`: when the oldest unsettled batch was planned; `claims`: sizes by bucket.
    """

    now: datetime
    newest: datetime | None
    boundary: datetime | None
    waiting: datetime | None
    wanted: datetime | None
    unsettled: datetime | None
    claims: Mapping[str, Size]


@dataclass(frozen=True)
class Horizon:
    """Where the registry's boundary is to stand (None: nowhere yet), and where the two streams' tables begin.

    `notes`: what held something back, or could not be met, in sentences.
    """

    boundary: datetime | None
    primary: datetime | None
    foreign: datetime | None
    notes: tuple[str, ...] = ()


def horizon(pipeline: Pipeline, facts: Facts) -> Horizon:
    """How far back each table has to reach."""
    if facts.newest is None:
        return Horizon(facts.boundary, None, None, ("there is no claim yet",))
    # Old logs that are read late are as fresh as their newest event: the machine's clock must not expire them unread.
    clock = min(facts.now, facts.newest)
    notes: list[str] = []
    boundary = _by_size(pipeline, facts, clock - timedelta(seconds=pipeline.registry.retention), clock, notes)
    if facts.waiting and facts.waiting < boundary:
        boundary = facts.waiting
        notes.append(f"boundary held back to {boundary}: an event of that time still waits in `pending`")
    kept = clock
    if facts.unsettled and facts.unsettled < clock:
        kept = facts.unsettled
        notes.append(f"primary and foreign held back: a batch planned at {kept} is not settled")
    boundary = _floor(pipeline, boundary)
    primary = kept - timedelta(seconds=pipeline.kept("primary"))
    return Horizon(
        boundary=max(boundary, facts.boundary or boundary),
        primary=_floor(pipeline, min(primary, facts.wanted or primary)),
        foreign=_floor(pipeline, kept - timedelta(seconds=pipeline.kept("foreign"))),
        notes=tuple(notes),
    )


def _by_size(pipeline: Pipeline, facts: Facts, by_age: datetime, clock: datetime, notes: list[str]) -> datetime:
    """The later of what age and size ask for; the verification's window is left alone.

    Claims are kept beyond the boundary by `registry.repeats`: to have fewer of them, both move.
    """
    limits = (pipeline.registry.max_rows, pipeline.registry.max_bytes)
    if limits == (None, None):
        return by_age
    latest = clock - timedelta(seconds=pipeline.verify.window)
    rows = bytes_ = 0
    for bucket in sorted(facts.claims, reverse=True):
        rows += facts.claims[bucket].rows
        bytes_ += facts.claims[bucket].bytes
        if (limits[0] and rows > limits[0]) or (limits[1] and bytes_ > limits[1]):
            wanted = bucket_start(bucket) + timedelta(seconds=pipeline.registry.bucket + pipeline.repeats)
            if wanted > latest:
                kept = "verify.window or registry.repeats" if pipeline.by_id else "verify.window"
                notes.append(f"registry.max_rows or max_bytes cannot be met without cutting into {kept}")
            return max(by_age, min(wanted, latest))
    return by_age


def _floor(pipeline: Pipeline, moment: datetime) -> datetime:
    return bucket_start(bucket_at(moment, pipeline.registry.bucket))
