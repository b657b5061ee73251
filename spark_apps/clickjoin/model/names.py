"""Names that people give: those of replicas, and classes as `module:Class`."""

from __future__ import annotations

import importlib
import re
from typing import Any

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


def named_class(what: str, name: str) -> Any:
    """What `module:Class` names. `what`: how messages call it. Errors: ConfigError where it is not there."""
    module, _, cls = name.partition(":")
    try:
        return getattr(importlib.import_module(module), cls)
    except ImportError as error:
        raise ConfigError(
            f"{what} {name}: cannot be imported ({error})",
            remedy="Check its spelling, and that its folder is on PYTHONPATH",
        ) from error
    except AttributeError as error:
        raise ConfigError(f"{what} {name}: {module} has no class {cls}", remedy="Check its spelling") from error
