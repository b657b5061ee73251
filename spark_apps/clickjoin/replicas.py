"""Replicas by name: which names there can be, and which have ever joined."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clickjoin.dispatcher.journal import sequences
from clickjoin.errors import ConfigError

if TYPE_CHECKING:
    from clickjoin.lake import SmallTables

# Of replicas that read raw logs of the past once, and not the pipeline's own (dates.backfill).
RAW = "backfill-"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")


def replica_name(name: str) -> str:
    """The name, if it is one: it is part of tokens, of transactions and of folders. Errors: ConfigError."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is no name of a replica", remedy="Write a-z, 0-9, - and _, beginning with a letter, at most 63"
        )
    return name


def joining_name(name: str) -> str:
    """The name, if a replica that reads the pipeline's own logs can have it. Errors: ConfigError."""
    if name.startswith(RAW):
        raise ConfigError(
            f"{name!r}: names that begin with {RAW} are of replicas that read a backfill's raw logs",
            remedy="Choose another name",
        )
    return replica_name(name)


def require_known(small: SmallTables, replica: str) -> None:
    """Check that a replica has planned a batch of new records. Errors: ConfigError, which names those that have."""
    known = [name for name, sequence in sequences(small) if sequence == "join"]
    if replica not in known:
        raise ConfigError(
            f"replica {replica} has never planned a batch",
            remedy=f"Name one that has: {', '.join(known)}" if known else "Begin with `clickjoin run`, or `drain`",
        )
