"""Whether the tables of the processing fit their journal: one that was put back from a copy is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickjoin.model.errors import LakeError
from clickjoin.schemas.process import NUMBERED

if TYPE_CHECKING:
    from clickjoin.dispatcher.journal import Journal
    from clickjoin.processing.tables import ProcessTables

_REMEDY = "Put the newest copies of all tables there back; or run `clickjoin process --rebuild`"


def require_agreement(tables: ProcessTables, journal: Journal) -> None:
    """Check that each table holds what settled batches have committed, and none that was never planned.

    Errors: LakeError, which names the table and both numbers.
    """
    there = {name: max(tables.latest_txn_version(name, journal.app), 0) for name in NUMBERED}
    state = journal.load()  # last: who commits has planned before
    for name, number in there.items():
        if number > state.last:
            raise LakeError(
                f"{tables.path('journal')}: is older than table {name}, which holds batch {number}: the journal knows "
                f"batches to {state.last}",
                remedy=_REMEDY,
            )
        if number < (seen := state.held.txns.get(name, 0)):
            raise LakeError(
                f"{tables.path(name)}: is older than the journal: batch {seen} was committed to it, and it holds "
                f"batches to {number}",
                remedy=_REMEDY,
            )
