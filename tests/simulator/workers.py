"""What Spark's workers do to files, done to those of the model: read, picked from, and written but not committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from clickjoin.engines.arrow import dealing
from clickjoin.kernel.data_file import DataFile, Target
from tests.simulator import rust

_split = dealing._split


def deal(*, apart: bool) -> None:
    """Deal the events of each shard out by themselves, as those of a bucket of many are; else as they are few."""
    dealing._split = (lambda shards, rows: [(shard,) for shard in shards]) if apart else _split


def write(target: Target, rows: Any, order: str = "") -> list[DataFile]:
    """Rows as files of the model, one a partition."""
    lake = rust.lake()
    table = lake.table(target.root)
    assert table
    held = [dict.fromkeys(table.columns) | row for row in rows.select(target.schema.names).to_pylist()]
    made = lake.write(table, held)
    return [_data_file(file) for file in made]


def _data_file(file: Any) -> DataFile:
    values = {name: str(value) for name, value in file.values.items()}
    return DataFile(file.path, 1000 * len(file.rows), len(file.rows), values, "{}")


def landed(uri: str, version: int, nonce: str, error: Exception) -> bool:
    """Whether a version is that of a nonce."""
    lake = rust.lake()
    table = lake.table(uri)
    assert table
    lake.pause("read", table.name)
    return len(table.commits) > version and table.commits[version].nonce == nonce


def flush(uri: str, version: int, *_: object) -> None:
    """Have a version on disk."""
    table = rust.lake().table(uri)
    assert table
    rust.lake().flush(table, version)


def whole(root: str, files: Sequence[str], schema: Any) -> Any:
    """All rows of some files."""
    return pa.Table.from_pylist(_rows(root, files, schema), schema=schema)


def of_batch(root: str, file: str, batch: int, schema: Any) -> Any:
    """Rows of a batch."""
    rows = [row for row in _rows(root, [file], schema) if row["batch"] == batch]
    return pa.Table.from_pylist(rows, schema=schema)


def pick(
    root: str, files: Sequence[str], ids: Any, when: Any, schema: Any, readers: int = 2, *, by: str = "event_id",
    others: bool = False, keys: Any = None,
) -> Any:  # fmt: skip
    """Rows that have one of some ids."""
    wanted = set(ids.to_pylist())
    rows = [row for row in _rows(root, files, schema) if row[by] in wanted]
    return pa.Table.from_pylist(rows, schema=schema)


def _rows(root: str, files: Sequence[str], schema: Any) -> list[dict[str, Any]]:
    lake = rust.lake()
    lake.pause("read", root.rsplit("/", 1)[-1])
    missing = [file for file in files if f"{root}/{file}" not in lake.files]
    if missing:
        raise FileNotFoundError(f"{root}/{missing[0]}")
    rows = (row for file in files for row in lake.files[f"{root}/{file}"].rows)
    return [{name: row.get(name) for name in schema.names} for row in rows]
