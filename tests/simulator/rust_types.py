"""What stands beside a table handle in `deltalake`: errors, schemas, commit properties, and rows that were read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

ARROW = {
    "string": pa.string(),
    "binary": pa.binary(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "boolean": pa.bool_(),
    "double": pa.float64(),
    "date": pa.date32(),
}
ARROW["timestamp"] = pa.timestamp("us", tz="UTC")


class DeltaError(Exception):
    """Root of deltalake's errors."""


class TableNotFoundError(DeltaError):
    """No table there."""


class CommitFailedError(DeltaError):
    """A commit that was refused."""


@dataclass(frozen=True)
class PrimitiveType:
    """A column's type."""

    type: str


@dataclass(frozen=True)
class Field:
    """A column."""

    name: str
    type: Any
    nullable: bool = True
    metadata: Any = None


class Schema:
    """Columns."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self.fields = list(fields)

    def to_json(self) -> str:
        """As the log has it, without what no column of the model has."""
        return json.dumps({"fields": [{"name": field.name, "nullable": True, "metadata": {}} for field in self.fields]})


@dataclass(frozen=True)
class Transaction:
    """An application transaction."""

    app_id: str
    version: int
    last_updated: int | None = None


@dataclass(frozen=True)
class AddAction:
    """A file to commit."""

    path: str
    size: int
    partition_values: Mapping[str, str | None]
    modification_time: int
    data_change: bool
    stats: str


@dataclass(frozen=True)
class RemoveAction:
    """A file that a commit takes away."""

    path: str
    data_change: bool
    deletion_timestamp: int
    size: int | None = None
    partition_values: Mapping[str, str | None] | None = None


@dataclass(frozen=True)
class PostCommitHookProperties:
    """What follows a commit to S3; the simulator's lakes lie on a disk."""

    create_checkpoint: bool = True
    cleanup_expired_logs: bool | None = None


@dataclass(frozen=True)
class CommitProperties:
    """What a commit carries besides its data."""

    custom_metadata: dict[str, str] | None = None
    max_commit_retries: int | None = None
    app_transactions: Sequence[Transaction] | None = None


@dataclass(frozen=True)
class WriterProperties:
    """How files are packed, which no schedule depends on."""

    compression: str | None = None


class Rows:
    """Rows read: as plain dicts at once, as a pyarrow Table where more than that is asked for."""

    def __init__(self, rows: list[dict[str, Any]], columns: dict[str, str]) -> None:
        self._rows = rows
        self._columns = columns
        self.num_rows = len(rows)

    def __len__(self) -> int:
        return self.num_rows

    def to_pylist(self) -> list[dict[str, Any]]:
        """Rows as dicts."""
        return [{name: row.get(name) for name in self._columns} for row in self._rows]

    def _table(self) -> Any:
        schema = pa.schema([(name, ARROW.get(kind, pa.string())) for name, kind in self._columns.items()])
        return pa.Table.from_pylist(self.to_pylist(), schema=schema)

    def __getitem__(self, name: str) -> Any:
        return self._table()[name]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table(), name)
