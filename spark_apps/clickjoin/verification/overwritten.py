"""Commits that were acknowledged, and that another has overwritten: the journal knows them, the log does not."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from clickjoin.agreement.facts import ACCOUNTED, JOURNAL, Facts, Key
from clickjoin.dispatcher.committed import CommittedTxns
from clickjoin.lake.history import transactions

if TYPE_CHECKING:
    from clickjoin.agreement.rules import Disagreement
    from clickjoin.lake.delta_reader import DeltaReader


@dataclass(frozen=True)
class Overwritten:
    """A batch's commit to a table: its token, and the versions of its neighbours, between which it was."""

    table: str
    app_id: str
    number: int
    after: int
    before: int

    @property
    def accounted(self) -> str:
        """The application that says, in the table, that what hung on the commit is repaired."""
        return f"{ACCOUNTED}/{self.app_id}/{self.number}"

    def sample(self) -> dict[str, Any]:
        """As plain data."""
        detail = f"was between versions {self.after} and {self.before}"
        return {"table": self.table, "token": f"{self.app_id}/{self.number}", "detail": detail}


def overwritten(
    delta: DeltaReader, facts: Facts, since: datetime, older: Sequence[Disagreement] = ()
) -> list[Overwritten]:
    """Commits of batches settled since a moment that are not in the log, which holds some before and after them.

    `older`: batches that a table must hold and does not. All between them and what it holds is found now, since once
    they are accounted for it would look overwritten.
    """
    committed = _committed(delta, facts, since)
    ends = {(one.table, one.app_id, one.number): facts.version(one.table) + 1 for one in older if one.number}
    found: list[Overwritten] = []
    for table in sorted({name.partition("/")[0] for held in committed.values() for name in held}):
        if table in facts.logs:
            log = transactions(delta.path(table), since)
            log |= {(app, number): version for (name, app, number), version in ends.items() if name == table}
            for (replica, sequence), held in committed.items():
                app = f"{facts.pipeline}/{replica}/{sequence}"
                for name, numbers in held.items():
                    if name.partition("/")[0] == table:
                        found += _missing(facts, table, f"{app}{name[len(table) :]}", numbers, log)
    return found


def _missing(
    facts: Facts, table: str, app: str, numbers: set[int], log: Mapping[tuple[str, int], int]
) -> Iterator[Overwritten]:
    """What lies between commits that are there: before the first the log may have been cleaned."""
    there = {number: version for (name, number), version in log.items() if name == app}
    known = facts.logs[table].txns
    for number in sorted(numbers - set(there)):
        before = [version for other, version in there.items() if other > number]
        after = [version for other, version in there.items() if other < number]
        lost = Overwritten(table, app, number, max(after, default=0), min(before, default=0))
        if before and after and lost.accounted not in known:
            yield lost


def _committed(delta: DeltaReader, facts: Facts, since: datetime) -> dict[Key, dict[str, set[int]]]:
    """By sequence and table: the batches that settled rows say have committed to it."""
    rows = delta.read(JOURNAL, [("state", "=", "settled")], ["replica", "sequence", "batch", "at", "plan"])
    found: dict[Key, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for row in rows.to_pylist():
        if row["at"] >= since:
            key = (row["replica"], row["sequence"])
            held = CommittedTxns.from_plain(
                json.loads(row["plan"]).get("held", {}), f"{facts.pipeline}/{'/'.join(key)}"
            )
            for name, number in held.txns.items():
                if number == row["batch"]:
                    found[key][name].add(number)
    return found
