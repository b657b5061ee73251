"""Every table that a pipeline owns: its columns, their types and units, and how it is laid out.

This is the one place where schemas are written down; `clickjoin schema --markdown` prints docs/tables.md from it.
Times are TIMESTAMP (microseconds, UTC); `seconds_*` are DOUBLE seconds; `*_bytes`, `offset` and `length` bytes.
"""

from __future__ import annotations

from clickjoin.tables.base import Column, Table
from clickjoin.tables.books import BATCHES, BOUNDARY, METRICS, TIMELINE
from clickjoin.tables.events import (
    EXPIRED,
    FILTERED,
    FOREIGN,
    JOINED,
    PENDING,
    PRIMARY,
    QUARANTINE,
    REGISTRY,
    UNJOINABLE,
)

ALL = (
    REGISTRY,
    JOINED,
    PRIMARY,
    FOREIGN,
    PENDING,
    UNJOINABLE,
    EXPIRED,
    FILTERED,
    QUARANTINE,
    BATCHES,
    METRICS,
    TIMELINE,
    BOUNDARY,
)
BY_NAME = {table.name: table for table in ALL}


def markdown() -> str:
    """All tables as Markdown, for the documentation."""
    parts = ["# Tables", "", (__doc__ or "").split("\n\n")[1].replace("\n", " "), ""]
    for table in ALL:
        parts += [f"## {table.name}", "", table.purpose.capitalize() + ".", ""]
        if table.partitions:
            parts += [f"Partitioned by {', '.join(f'`{name}`' for name in table.partitions)}.", ""]
        parts += ["| column | type | meaning |", "| --- | --- | --- |"]
        parts += [f"| `{c.name}` | {c.type} | {c.meaning.replace('|', 'or')} |" for c in table.columns] + [""]
    return "\n".join(parts)


__all__ = [
    "ALL",
    "BATCHES",
    "BOUNDARY",
    "BY_NAME",
    "EXPIRED",
    "FILTERED",
    "FOREIGN",
    "JOINED",
    "METRICS",
    "PENDING",
    "PRIMARY",
    "QUARANTINE",
    "REGISTRY",
    "TIMELINE",
    "UNJOINABLE",
    "Column",
    "Table",
    "markdown",
]
