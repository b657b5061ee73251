"""Which replicas have ever joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickjoin.dispatcher.journal import sequences
from clickjoin.model.errors import ConfigError

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader


def require_known(delta: DeltaReader, replica: str) -> None:
    """Check that a replica has planned a batch of new records. Errors: ConfigError, which names those that have."""
    known = [name for name, sequence in sequences(delta) if sequence == "join"]
    if replica not in known:
        raise ConfigError(
            f"replica {replica} has never planned a batch",
            remedy=f"Name one that has: {', '.join(known)}" if known else "Begin with `clickjoin run`, or `drain`",
        )
