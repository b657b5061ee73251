"""All tables of a lake as they stood at one moment, taken without a lock while others commit.

Every table's newest version is read twice. Where no table has changed between its first read and its second, all of
them stood like that at the moment between the two rounds. So it is a state that the lake was in, and one that a crash
could have left: batches that were under way are run again from their plans in the journal.

Tables of per-key processing are looked at before all others, in the same way. So they are of the same moment or of an
earlier one, as if the processing had been stopped there: the output has every row that they know of, and maybe more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from clickjoin.backup.processed import process_looks
from clickjoin.dispatcher.journal import JournalReader, sequences
from clickjoin.lake.readable import missing
from clickjoin.lake.snapshot_files import Look, PinnedTables, look
from clickjoin.model.errors import CommitConflict
from clickjoin.schemas import ALL

if TYPE_CHECKING:
    from clickjoin.model.batch_plan import BatchPlan

_LOOK_SECONDS = 0.02
Looks = dict[str, Look]


def cut(root: str, wait: float, sleep: Callable[[float], None] = time.sleep) -> Looks:
    """Every table at one moment, those of the processing at that or an earlier one, by their paths in the lake.

    `wait`: seconds to look for a moment at which nothing is committed, for each of the two.

    Errors: LakeError where a table is missing, CommitConflict where tables move all the time.
    """
    # In this order: an output that is older than what was counted of it would be read from its beginning again.
    processed = _at_rest(root, process_looks, wait, sleep)
    return {**_at_rest(root, looks, wait, sleep), **processed}


def _at_rest(root: str, see: Callable[[str], Looks], wait: float, sleep: Callable[[float], None]) -> Looks:
    end, before = time.monotonic() + wait, see(root)
    while True:
        now = see(root)
        moved = sorted(name for name in now.keys() | before.keys() if now.get(name) != before.get(name))
        if not moved:
            return now
        if time.monotonic() > end:
            raise CommitConflict(
                f"{root}: something is committed at every look for {wait:g} s, last to {', '.join(moved)}",
                remedy="Try again while fewer batches run, or wait longer (--wait SECONDS)",
            )
        before = now
        sleep(_LOOK_SECONDS)


def all_looks(root: str) -> Looks:
    """Every table, those of the processing too, one after the other."""
    return {**looks(root), **process_looks(root)}


def looks(root: str) -> Looks:
    """Every table that joins work on, one after the other."""
    found: Looks = {}
    for table in ALL:
        if (seen := look(root, table.name)) is None:
            raise missing(root, table.name)
        found[table.name] = seen
    return found


def under_way(pinned: PinnedTables, pipeline: str) -> list[BatchPlan]:
    """Batches that are planned and not settled in the cut."""
    journals = [JournalReader(pinned, pipeline, *key) for key in sequences(pinned)]
    return [plan for journal in journals if (plan := journal.load().unsettled)]


def named(plans: list[BatchPlan]) -> list[tuple[str, int]]:
    """Older versions of tables that batches under way read: a retry's split of `pending`, and so on."""
    parts = [plan.table for plan in plans if plan.table]
    streams = [("primary", part.primary) for part in parts if part.primary is not None]
    return [*((part.table, part.version) for part in parts), *streams]
