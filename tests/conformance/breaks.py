"""Guards of the promise, and how each is taken out. Only here do names below the public surface stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

Patch = pytest.MonkeyPatch


def _transaction_of_landing(patch: Patch) -> None:
    """Rows are appended under no transaction: a batch that is run again lands them again."""
    from clickjoin.engines.arrow.tables import ArrowTables

    once = ArrowTables._once

    def without(self: Any, name: str, write: Any, txn: Any, files: Any = None) -> bool:
        return once(self, name, write, None if name in ("primary", "foreign") else txn, files)

    patch.setattr(ArrowTables, "_once", without)


def _transaction_of_output(patch: Patch) -> None:
    """Output is published under no transaction."""
    from clickjoin.engines.arrow.tables import ArrowTables

    once = ArrowTables._once

    def without(self: Any, name: str, write: Any, txn: Any, files: Any = None) -> bool:
        return once(self, name, write, None if name in ("joined", "deduplicated") else txn, files)

    patch.setattr(ArrowTables, "_once", without)


def _very_next_version(patch: Patch) -> None:
    """Claims are committed as whatever version comes next."""
    from clickjoin.lake.table_version import TableVersion

    commit_next = TableVersion.commit_next

    def commit(self: Any, files: Any, txn: Any, removed: Any = ()) -> bool:
        while not commit_next(self, files, txn, removed):
            self._table.update_incremental()
            if txn and self.holds(txn):
                return False
        return True

    patch.setattr(TableVersion, "commit_next", commit)


def _boundary(patch: Patch) -> None:
    """The registry is taken to answer for all time."""
    from clickjoin import engine

    patch.setattr(engine, "load_bounds", lambda _: ({}, None))


BREAKS: Mapping[str, Callable[[Patch], None]] = {
    "transaction of landing": _transaction_of_landing,
    "transaction of output": _transaction_of_output,
    "very next version": _very_next_version,
    "boundary": _boundary,
}
