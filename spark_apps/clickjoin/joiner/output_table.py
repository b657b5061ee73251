"""Table `joined` as a pipeline's file wants it: how a new lake makes it, and whether a lake has made it so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from clickjoin.model.errors import ConfigError
from clickjoin.model.places import RECORD, RECORDS
from clickjoin.schemas import DEDUPLICATED, JOINED

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.schemas import Table

MAX_SKIPPING = 8  # columns of the adapter that statistics are kept of: each makes every entry of the log longer
_RECORDS = (*RECORDS, *RECORDS.values(), RECORD)  # an adapter of a user may name them after the streams
_UNSKIPPABLE = ("BOOLEAN", "BINARY", "ARRAY")  # Delta keeps no least and greatest value of these
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def output_table(pipeline: Pipeline) -> Table:
    """The output's table for a new lake."""
    table = DEDUPLICATED if pipeline.stream else JOINED
    partitions = pipeline.output.partition or table.partitions
    # Of a column that files are partitioned by, statistics would say nothing more.
    dates = () if "event_date" in partitions else ("event_date",)
    return replace(table, partitions=tuple(partitions), statistics=(*table.statistics, *dates))


def skipping_columns(columns: Mapping[str, str]) -> list[str]:
    """Columns of an adapter (name to Spark SQL type) to keep statistics of: the first that files can be pruned by.

    Whole records are none of them; nor are names that Delta's list of them would have to quote.
    """
    found = (name for name, kind in columns.items() if kind.strip().upper().partition("<")[0] not in _UNSKIPPABLE)
    return [name for name in found if name not in _RECORDS and _PLAIN.fullmatch(name)][:MAX_SKIPPING]


def require_as_made(delta: DeltaReader, pipeline: Pipeline) -> None:
    """Check that a pipeline's file asks for the partition that its lake was begun with. Errors: ConfigError."""
    wanted = pipeline.output.partition
    if wanted is None or not delta.exists(JOINED.name):  # a file that says nothing takes what the lake was begun with
        return
    there = delta.table(JOINED.name).partitions
    if wanted != there:
        raise ConfigError(
            f"output.partition is {_text(wanted)} in the pipeline's file, and the lake was begun with {_text(there)}",
            remedy="Set it back, or begin another lake: files that are written lie where they lie",
        )


def _text(names: tuple[str, ...]) -> str:
    return f"[{', '.join(names)}]"
