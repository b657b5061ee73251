"""What a table and a column are."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Column:
    """One column: name, Spark SQL type, and what it means, with its unit."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True)
class Table:
    """One table: its columns, partition columns, and the columns that file statistics are kept of."""

    name: str
    purpose: str
    columns: tuple[Column, ...]
    partitions: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Column names in order."""
        return [column.name for column in self.columns]

    @property
    def ddl(self) -> str:
        """Columns as Spark SQL DDL."""
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)


def columns(text: str) -> tuple[Column, ...]:
    """Columns from lines of name, type and meaning."""
    rows = (line.split(None, 2) for line in text.splitlines() if line.strip())
    return tuple(Column(name, kind, meaning) for name, kind, meaning in rows)
