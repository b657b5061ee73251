"""Whether the tables of the processing fit their journal: one that was put back from a copy is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickjoin.lake.log_looks import logs
from clickjoin.lake.restores import restored_text
from clickjoin.model.errors import LakeError
from clickjoin.schemas.process import NUMBERED, PROCESS

if TYPE_CHECKING:
    from clickjoin.dispatcher.journal import Journal
    from clickjoin.engines.tables_port import Tables

_REMEDY = "Put the newest copies of all tables there back; or run `clickjoin process --rebuild`"


def require_agreement(tables: Tables, journal: Journal) -> None:
    """Check that each table holds what settled batches have committed, and none that was never planned.

    Errors: LakeError, which names the table and both numbers.
    """
    _require_not_put_back(tables)
    # Another process may be at work: what says that something is there is read before, what is planned first after.
    seen_then = journal.load().held.txns
    there = {name: max(tables.latest_txn_version(name, journal.app), 0) for name in NUMBERED}
    planned = journal.planned()
    for name, number in there.items():
        if number > planned:
            raise LakeError(
                f"{tables.path('journal')}: is older than table {name}, which holds batch {number}: the journal knows "
                f"batches to {planned}",
                remedy=_REMEDY,
            )
        if number < (seen := seen_then.get(name, 0)):
            raise LakeError(
                f"{tables.path(name)}: is older than the journal: batch {seen} was committed to it, and it holds "
                f"batches to {number}",
                remedy=_REMEDY,
            )


def _require_not_put_back(tables: Tables) -> None:
    """Check that no other program has put a table back: its batches go on as if the rows were there."""
    for name, log in logs(tables, [table.name for table in PROCESS]).items():
        if log.put_back:
            path = tables.path(name)
            raise LakeError(
                restored_text(path, log.put_back),
                remedy=f"Undo it: RESTORE TABLE delta.`{path}` TO VERSION AS OF {log.put_back - 1}; or run `clickjoin "
                "process --rebuild`",
            )
