"""What a lake was made with: columns and partitions of a table that lakes from before lack, or that a file chooses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from clickjoin.schemas import Table

STATISTICS = "delta.dataSkippingStatsColumns"


def as_made(table: Table, made: DeltaTable) -> Table:
    """A table with the columns, partitions and statistics that it has in a lake.

    Columns are its own: those before the last that every lake has. What an adapter adds comes after that one, so that a
    column of an adapter, made when the name was free, is never taken for one of ours.
    """
    names, last = [field.name for field in made.schema().fields], table.columns[-1].name
    own = set(names[: names.index(last) + 1] if last in names else names)
    metadata = made.metadata()
    said = (metadata.configuration or {}).get(STATISTICS)
    return replace(
        table,
        columns=tuple(column for column in table.columns if column.name in own or column.name not in table.later),
        partitions=tuple(metadata.partition_columns),
        statistics=tuple(said.split(",")) if said else table.statistics,
    )
