"""Every table that a pipeline owns: its columns, their types and units, and how it is laid out.

This is the one place where schemas are written down; `clickjoin schema --markdown` prints docs/tables.md from it.
Times are TIMESTAMP (microseconds, UTC); `seconds_*` are DOUBLE seconds; `*_bytes`, `offset` and `length` bytes.
"""

from __future__ import annotations

from clickjoin.schemas.base import Column, Table
from clickjoin.schemas.bookkeeping import BATCHES, BOUNDARY, METRICS, TIMELINE
from clickjoin.schemas.events import (
    DEDUPLICATED,
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
from clickjoin.schemas.process import PROCESS
from clickjoin.schemas.reports import DATES, FAILURES, FORGOTTEN, QUALITY
from clickjoin.schemas.verification import DOUBLES, FINDINGS, VERIFICATION

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
    VERIFICATION,
    FINDINGS,
    DOUBLES,
    DATES,
    QUALITY,
    FORGOTTEN,
)
BY_NAME = {table.name: table for table in ALL}
# Names that no column of an adapter may have.
RESERVED = frozenset(JOINED.names)


def markdown() -> str:
    """All tables as Markdown, for the documentation."""
    parts = ["# Tables", "", (__doc__ or "").split("\n\n")[1].replace("\n", " "), ""]
    for table in (*ALL[:2], DEDUPLICATED, *ALL[2:]):
        parts += [f"## {table.name}", "", table.purpose.capitalize() + ".", ""]
        if table.partitions:
            parts += [f"Partitioned by {', '.join(f'`{name}`' for name in table.partitions)}.", ""]
        parts += _table(table)
    failures = [f"## _quality/{FAILURES.name}", "", FAILURES.purpose.capitalize() + ".", "", *_table(FAILURES)]
    return "\n".join([*parts, *failures, *_of_processing()])


def _of_processing() -> list[str]:
    parts = [
        "## Tables of per-key processing",
        "",
        "They lie in folder `process` of the pipeline, beside a journal.",
        "",
    ]
    for table in PROCESS[1:]:
        parts += [f"### process/{table.name}", "", table.purpose.capitalize() + ".", "", *_table(table)]
    return parts


def _table(table: Table) -> list[str]:
    head = ["| column | type | meaning |", "| --- | --- | --- |"]
    return [*head, *[f"| `{c.name}` | {c.type} | {c.meaning.replace('|', 'or')} |" for c in table.columns], ""]


__all__ = [
    "ALL",
    "BATCHES",
    "BOUNDARY",
    "BY_NAME",
    "DATES",
    "DEDUPLICATED",
    "DOUBLES",
    "EXPIRED",
    "FILTERED",
    "FINDINGS",
    "FOREIGN",
    "FORGOTTEN",
    "JOINED",
    "METRICS",
    "PENDING",
    "PRIMARY",
    "QUALITY",
    "QUARANTINE",
    "REGISTRY",
    "RESERVED",
    "TIMELINE",
    "UNJOINABLE",
    "VERIFICATION",
    "Column",
    "Table",
    "markdown",
]
