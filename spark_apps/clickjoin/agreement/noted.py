"""Versions of tables that something is about to rest on and that no batch numbers: the journal takes a note first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from clickjoin.model.txn import Shown, Txn

if TYPE_CHECKING:
    from clickjoin.engines.tables_port import Tables

_NOTED = re.compile(r"noted/([^/]+)/(.+)")


def note(delta: Tables, table: str) -> None:
    """Have the journal remember how far a table has come: one that is put back to before it is refused at the start."""
    delta.open(table)
    table_id, version = delta.shown()[table]
    delta.commit_txn_only("journal", Txn(f"noted/{table}/{table_id}", version))


def noted(txns: Mapping[str, int]) -> Shown:
    """What the journal's transactions say of tables: id and version of each; of several ids the newest version."""
    found: dict[str, list[tuple[str, int]]] = {}
    for app_id, version in txns.items():
        if match := _NOTED.fullmatch(app_id):
            found.setdefault(match[1], []).append((match[2], version))
    return {table: max(seen, key=lambda one: one[1]) for table, seen in found.items()}
