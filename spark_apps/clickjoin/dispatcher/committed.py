"""What a sequence's batches have seen committed: carried from settled row to settled row of the journal.

A table that is restored from an older copy, or has lost its newest commits, holds less than that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clickjoin.model.txn import Shown
from clickjoin.schemas import BY_NAME
from clickjoin.schemas.process import NUMBERED

UNNUMBERED = ("registry_boundary", "shard_timeline", "forgotten")


@dataclass(frozen=True)
class CommittedTxns:
    """By table: the newest batch committed to it (`quarantine/primary`: of that stream), or its id and a version."""

    txns: Mapping[str, int] = field(default_factory=dict)
    tables: Shown = field(default_factory=dict)

    def plus(self, txns: Mapping[str, int], tables: Shown) -> CommittedTxns:
        """The same with what has been seen since; the version of a table with another id begins again."""
        newer = {name: max(number, self.txns.get(name, 0)) for name, number in txns.items()}
        shown = dict(self.tables)
        for name, (table_id, version) in tables.items():
            before = shown.get(name, (table_id, 0))
            shown[name] = (table_id, max(version, before[1]) if before[0] == table_id else version)
        return CommittedTxns({**self.txns, **newer}, shown).known()

    def known(self) -> CommittedTxns:
        """What can be vouched for: batches, but not by the journal of itself; versions, where commits have no number.

        Of other tables no version: what no batch has committed, such as files rewritten, may be lost with the power.
        """
        names = {*BY_NAME, *NUMBERED} - {"journal"}
        return CommittedTxns(
            {name: number for name, number in self.txns.items() if name.partition("/")[0] in names},
            {name: shown for name, shown in self.tables.items() if name in UNNUMBERED},
        )

    def to_plain(self, app_id: str) -> dict[str, Any]:
        """As plain data. The application is named: a pipeline under another name begins its numbers again."""
        return {"of": app_id, "txns": dict(self.txns), "tables": {k: list(v) for k, v in self.tables.items()}}

    @classmethod
    def from_plain(cls, raw: Mapping[str, Any], app_id: str) -> CommittedTxns:
        """What `to_plain` made; nothing where it was made of another application."""
        if raw.get("of") != app_id:
            return cls()
        return cls(raw["txns"], {name: (str(item[0]), int(item[1])) for name, item in raw["tables"].items()})
