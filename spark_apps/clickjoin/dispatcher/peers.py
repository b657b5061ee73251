"""Other replicas, seen through the journal: what they have planned, and whether their claims are committed yet.

Replicas that follow one another closely would look up the same events and then find them taken. So a batch waits, a
moment before it asks the registry, for the claims of batches that others planned before it: what they own by then
costs no look-up and no conflict. A replica that has died is not waited for.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from clickjoin.dispatcher.journal import JournalReader, sequences
from clickjoin.model.errors import ConfigError

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.engines.context import Context
    from clickjoin.lake.delta_reader import DeltaReader

_MOST_SECONDS = 5.0
_LOOK_SECONDS = 0.05
# A batch older than this belongs to a replica that is dead, or so slow that it is not worth waiting for.
_FRESH = timedelta(seconds=10)
_ALIVE = timedelta(seconds=60)


@dataclass(frozen=True)
class PeerBatch:
    """The newest join batch of another replica."""

    replica: str
    number: int
    planned_at: datetime


def require_known(delta: DeltaReader, replica: str) -> None:
    """Check that a replica has planned a batch of new records. Errors: ConfigError, which names those that have."""
    known = [name for name, sequence in sequences(delta) if sequence == "join"]
    if replica not in known:
        raise ConfigError(
            f"replica {replica} has never planned a batch",
            remedy=f"Name one that has: {', '.join(known)}" if known else "Begin with `clickjoin run`, or `drain`",
        )


def who_joins(delta: DeltaReader, pipeline: str, replica: str) -> str:
    """This replica, or where it has never planned a batch of new records the one that has planned the newest."""
    others = peer_batches(delta, pipeline, replica)
    if not others or (replica, "join") in sequences(delta):
        return replica
    return max(others, key=lambda other: (other.planned_at, other.replica)).replica


def peer_batches(delta: DeltaReader, pipeline: str, replica: str) -> list[PeerBatch]:
    """The newest join batch of every other replica that ever planned one."""
    names = [name for name, sequence in sequences(delta) if sequence == "join" and name != replica]
    return [found for name in names if (found := _newest(delta, pipeline, name))]


def any_alive(delta: DeltaReader, pipeline: str, replica: str, now: datetime) -> bool:
    """Whether another replica has planned a batch within the last minute."""
    return any(peer.planned_at > now - _ALIVE for peer in peer_batches(delta, pipeline, replica))


def gives_way(delta: DeltaReader, pipeline: Pipeline, replica: str, now: datetime) -> bool:
    """Whether this replica leaves another some of its time while it is behind (`batch.catch_up_share`)."""
    return pipeline.batch.catch_up_share < 1 and any_alive(delta, pipeline.pipeline, replica, now)


def _newest(delta: DeltaReader, pipeline: str, replica: str) -> PeerBatch | None:
    number = JournalReader(delta, pipeline, replica, "join").planned()
    key = [("replica", "=", replica), ("sequence", "=", "join"), ("batch", "=", number), ("state", "=", "planned")]
    rows = delta.read("journal", key, ["at"])["at"].to_pylist()
    return PeerBatch(replica, number, rows[0]) if rows else None


def has_claimed(delta: DeltaReader, pipeline: str, other: PeerBatch) -> bool:
    """Whether the claims of another's newest batch are committed, or it is done without any."""
    app = f"{pipeline}/{other.replica}/join"
    if delta.latest_txn_version("registry", app) >= other.number:
        return True
    return JournalReader(delta, pipeline, other.replica, "join").settled() >= other.number


def await_claims(ctx: Context) -> None:
    """Wait a moment for the claims of fresh batches that other replicas planned before this one."""
    delta, plan = ctx.lake.delta, ctx.plan
    mine = (plan.planned_at, plan.replica)
    ahead = [
        other
        for other in peer_batches(delta, plan.pipeline, plan.replica)
        if (other.planned_at, other.replica) < mine and mine[0] - other.planned_at < _FRESH
    ]
    for _ in range(int(_MOST_SECONDS / _LOOK_SECONDS)):
        if not ahead:
            return
        with delta.looked_at("registry", "journal"):
            ahead = [other for other in ahead if not has_claimed(delta, plan.pipeline, other)]
        if not ahead:
            return
        ctx.lake.sleep(_LOOK_SECONDS)
