"""What makes a commit idempotent, Delta's own application transaction; and which of them a process has seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Txn:
    """`txnAppId` and `txnVersion` of a commit: a table takes each version of an app once, and only growing ones."""

    app_id: str
    version: int


Shown = Mapping[str, tuple[str, int]]  # by table: the table's id, and a version of it


@dataclass
class SeenCommits:
    """The newest transaction seen of each application, by table.

    `lost`: versions of a table that were lost and accounted for (see agreement.account): they still count.
    """

    txns: dict[tuple[str, str], int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)

    def saw(self, table: str, app_id: str, version: int) -> None:
        """Note that a table holds a transaction."""
        if version > self.txns.get((table, app_id), 0):
            self.txns[table, app_id] = version

    def of(self, app_id: str) -> dict[str, int]:
        """What was seen of an application, by table; of one named below it as `table/rest`."""
        own = ((table, app, version) for (table, app), version in self.txns.items())
        return {
            f"{table}{app[len(app_id) :]}": version
            for table, app, version in own
            if app == app_id or app.startswith(f"{app_id}/")
        }
