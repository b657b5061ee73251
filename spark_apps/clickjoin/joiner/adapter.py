"""Adapters: what a pipeline's owner writes to filter, reshape and enrich (Photon, section 3.3.1).

An adapter works on whole DataFrames. It must keep `event_id` and `event_time` as they are, and give one row at most for
each event: what it leaves out is kept in table `filtered`. It may not depend on the clock or on chance, since a batch
that crashed is run again.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from clickjoin.errors import ConfigError
from clickjoin.tables import JOINED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Adapter:
    """Base of all adapters. `columns`: the columns that `merge` adds to the output, name to Spark SQL type."""

    columns: ClassVar[Mapping[str, str]] = {}

    def prepare(self, foreign: DataFrame) -> DataFrame:
        """Before look-up: leave rows out, or add columns for `merge` to use.

        Columns in: event_id, event_time, primary_id, primary_time, payload (the record as JSON text). The first four
        must come out again.
        """
        return foreign

    def merge(self, joined: DataFrame) -> DataFrame:
        """After look-up: make the output's own columns.

        Columns in: those that `prepare` gave, and `primary` (the primary record as JSON text). Columns out: event_id,
        event_time and all of `columns`.
        """
        raise NotImplementedError


class Merge(Adapter):
    """Both records side by side as JSON text, nothing left out."""

    columns: ClassVar[Mapping[str, str]] = {"foreign": "STRING", "primary": "STRING"}

    def merge(self, joined: DataFrame) -> DataFrame:
        """Columns out: event_id, event_time, foreign, primary."""
        return joined.select("event_id", "event_time", joined["payload"].alias("foreign"), "primary")


def load_adapter(name: str) -> Adapter:
    """The adapter that `module:Class` names. Errors: ConfigError that says what is wrong with it."""
    module, _, cls = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), cls)
    except ImportError as error:
        raise ConfigError(
            f"adapter {name}: cannot be imported ({error})",
            remedy="Check its spelling, and that its folder is on PYTHONPATH",
        ) from error
    except AttributeError as error:
        raise ConfigError(f"adapter {name}: {module} has no class {cls}", remedy="Check its spelling") from error
    if not (isinstance(found, type) and issubclass(found, Adapter)):
        raise ConfigError(f"adapter {name}: is no Adapter", remedy="Derive it from clickjoin.joiner.adapter.Adapter")
    taken = sorted(column for column in found.columns if column.lower() in JOINED.names)
    if taken:
        raise ConfigError(f"adapter {name}: columns {', '.join(taken)} are taken", remedy="Give them other names")
    return found()
