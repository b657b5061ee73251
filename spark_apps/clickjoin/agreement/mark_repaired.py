"""Writing down that what a table has lost is repaired: from then on it counts as if it were there."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from clickjoin.agreement.facts import ACCOUNTED, gather
from clickjoin.agreement.rules import OLD_TABLE, Disagreement, disagreements
from clickjoin.model.txn import Txn

if TYPE_CHECKING:
    from clickjoin.engines.tables_port import Tables


def account(delta: Tables, pipeline: str, tables: Collection[str]) -> list[str]:
    """Write into each of these tables what it was found to lack; returns the names of those that lacked something.

    A batch that a table has lost is fixed in it by an empty commit, so that no late copy can commit it once more.
    """
    found = [one for one in disagreements(gather(delta, pipeline)) if one.kind == OLD_TABLE and one.table in tables]
    for one in found:
        if one.number:
            delta.commit_txn_only(one.table, Txn(one.app_id, one.number))
    facts = gather(delta, pipeline)
    for name in {one.table for one in found}:
        missing = max((one.version for one in found if one.table == name), default=0) - facts.version(name)
        if missing > 0:
            known = max(facts.logs[name].txns.get(ACCOUNTED, 0), 0)
            delta.commit_txn_only(name, Txn(ACCOUNTED, known + missing))
    return sorted({one.table for one in found})


def lacking(found: Iterable[Disagreement]) -> list[str]:
    """Tables that are older than the rest."""
    return sorted({one.table for one in found if one.kind == OLD_TABLE})
