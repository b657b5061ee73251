"""Which names replicas can have."""

from __future__ import annotations

import re

from clickjoin.model.errors import ConfigError

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
