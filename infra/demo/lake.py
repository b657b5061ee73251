"""Looks at a pipeline's tables from outside, without Spark and without the product's own code."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import DeltaTable  # noqa: TID251 - who checks the product must not read through it

OUTCOMES = ("joined", "unjoinable", "expired", "filtered")


class Lake:
    """Tables under one folder; a table that is not there yet is empty."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open: dict[str, DeltaTable] = {}
        self._known: dict[tuple[str, ...], tuple[int, list[dict[str, Any]]]] = {}

    def versions(self) -> dict[str, str]:
        """The newest commit of each table, from file names alone: any work at all moves one of them."""
        logs = self.folder.glob("*/_delta_log")
        return {log.parent.name: max((file.name for file in log.glob("*.json")), default="") for log in logs}

    def commits(self) -> Counter[tuple[str, str, str]]:
        """Commits in all logs by table, writer (Spark, delta-rs) and operation, as DESCRIBE HISTORY has them."""
        found: Counter[tuple[str, str, str]] = Counter()
        for entry in sorted(self.folder.glob("*/_delta_log/*.json")):
            actions = map(json.loads, entry.read_text(encoding="utf-8").splitlines())
            info = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
            writer = str(info.get("engineInfo") or info.get("clientVersion") or "unknown")
            name = "Spark" if "Spark" in writer else "delta-rs" if "delta-rs" in writer else writer
            found[entry.parent.parent.name, name, info.get("operation", "")] += 1
        return found

    def rows(self, name: str) -> int:
        """Number of rows, from the statistics in the table's log alone."""
        table = self._table(name)
        if table is None:
            return 0
        actions = pa.table(table.get_add_actions(flatten=True))
        return sum(actions["num_records"].to_pylist()) if actions.num_rows else 0

    def read(self, name: str, *columns: str) -> list[dict[str, Any]]:
        """Some columns (all if none is named) of all rows; read again only when the table has changed."""
        table = self._table(name)
        if table is None:
            return []
        key, version = (name, *columns), table.version()
        if key not in self._known or self._known[key][0] != version:
            # Arrow's own file system: deltalake's, which is Python underneath, aborts some processes as they exit.
            files = pafs.SubTreeFileSystem(str(self.folder / name), pafs.LocalFileSystem())
            found = table.to_pyarrow_table(columns=list(columns) or None, filesystem=files)
            self._known[key] = version, found.to_pylist()
        return self._known[key][1]

    def ids(self, name: str) -> set[str]:
        """Distinct event ids of a table."""
        return {row["event_id"] for row in self.read(name, "event_id")}

    def waiting(self) -> set[str]:
        """Ids that are pending: in the history of table `pending`, and in no table that settles them."""
        return self.ids("pending").difference(*map(self.ids, OUTCOMES))

    def _table(self, name: str) -> DeltaTable | None:
        if name in self._open:
            self._open[name].update_incremental()
        elif (self.folder / name / "_delta_log").is_dir() and DeltaTable.is_deltatable(str(self.folder / name)):
            self._open[name] = DeltaTable(str(self.folder / name))
        return self._open.get(name)
