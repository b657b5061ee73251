"""The journal: every batch is planned in it before it starts and settled in it when it is done.

Each replica has its own, in its own partition of table `batches`; a number is planned once and settled once, whoever
tries, because both rows are committed under a Delta transaction of that number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from clickjoin.dispatcher.held import Held
from clickjoin.dispatcher.plan import BatchPlan
from clickjoin.lake import Txn
from clickjoin.sources.base import Position, Slice

if TYPE_CHECKING:
    from clickjoin.lake import SmallTables

SNAPSHOT_EVERY = 100
Positions = dict[str, dict[str, Position]]
_NOTHING = Held()


@dataclass(frozen=True)
class JournalState:
    """Last batch planned (0 if none), that batch if it is not settled yet, and how far each stream has been planned.

    `held`: what its batches have seen committed.
    """

    last: int = 0
    unsettled: BatchPlan | None = None
    positions: Positions = field(default_factory=dict)
    held: Held = field(default_factory=Held)


def fold(positions: Positions, changed: dict[str, Sequence[Position]]) -> None:
    """Take a plan's changed positions into what is known so far."""
    for stream, items in changed.items():
        positions.setdefault(stream, {}).update({item.generation: item for item in items})


def give_back(positions: Positions, stream: str, lost: Iterable[Slice]) -> None:
    """Set positions back to where lost slices began: should the file come back, its bytes are read after all."""
    for piece in lost:
        known = positions.get(stream, {}).get(piece.generation)
        if known and known.offset > piece.start:
            positions[stream][piece.generation] = replace(
                known, offset=piece.start, state="gone", anchor_length=0, anchor_hash="", size=piece.start,
                proven=0, prints=piece.before,
            )  # fmt: skip


def is_settled(small: SmallTables, plan: BatchPlan) -> bool:
    """Whether a batch is done, by whichever copy of it."""
    return Journal(small, plan.pipeline, plan.replica, plan.sequence).settled() >= plan.number


def sequences(small: SmallTables) -> list[tuple[str, str]]:
    """Every replica and sequence that the journal knows, from its log alone."""
    actions = small.files("batches")
    if not actions.num_rows:
        return []
    pairs = zip(actions["partition.replica"].to_pylist(), actions["partition.sequence"].to_pylist(), strict=True)
    return sorted(set(pairs))


def settled_json(lost: dict[str, list[dict[str, Any]]], held: Held, app_id: str) -> str:
    """What column `plan` of a settled row holds."""
    return json.dumps({"lost": lost, "held": held.to_plain(app_id)}, separators=(",", ":"))


class Journal:
    """The journal of one sequence of one replica."""

    def __init__(self, small: SmallTables, pipeline: str, replica: str, sequence: str) -> None:
        self._small = small
        self._key = {"replica": replica, "sequence": sequence}
        self._app = f"{pipeline}/{replica}/{sequence}"

    def seen(self, held: Held) -> Held:
        """What was held, and what this process has seen committed since."""
        return held.plus(self._small.noted.of(self._app), self._small.shown())

    def planned(self) -> int:
        """Highest batch number that has been planned, from the log alone; 0 if none."""
        return max(self._small.settled_txn("batches", f"{self._app}/planned"), 0)

    def settled(self) -> int:
        """Highest batch number that has been settled, from the log alone; 0 if none."""
        return max(self._small.settled_txn("batches", f"{self._app}/settled"), 0)

    def load(self) -> JournalState:
        """State as of now; reads the rows since the last snapshot only."""
        last = self.planned()
        if not last:
            return JournalState()
        since = max(1, last - 2 * SNAPSHOT_EVERY)
        rows = self._rows([("batch", ">=", since)])
        plans = {row["batch"]: row for row in rows if row["state"] == "planned"}
        snapshots = [number for number, row in plans.items() if row["snapshot"]]
        if not snapshots and since > 1:
            plans = {row["batch"]: row for row in self._rows([]) if row["state"] == "planned"}
            snapshots = [number for number, row in plans.items() if row["snapshot"]]
        return self._state(last, plans, max(snapshots, default=1), rows)

    def _state(self, last: int, plans: dict[int, Any], first: int, rows: list[dict[str, Any]]) -> JournalState:
        told = {row["batch"]: json.loads(row["plan"]) for row in rows if row["state"] == "settled"}
        held = Held.from_plain(told[max(told)].get("held", {}), self._app) if told else Held()
        positions: Positions = {}
        newest: BatchPlan | None = None
        for number in range(first, last + 1):
            newest = BatchPlan.from_json(plans[number]["plan"])
            fold(positions, dict(newest.positions))
            for stream, items in told.get(number, {"lost": {}})["lost"].items():
                give_back(positions, stream, [Slice(**item) for item in items])
        return JournalState(last, newest if self.settled() < last else None, positions, held)

    def _rows(self, more: list[Any]) -> list[dict[str, Any]]:
        filters = [(name, "=", value) for name, value in self._key.items()]
        return list(self._small.read("batches", filters=filters + more).to_pylist())

    def plan(self, plan: BatchPlan, at: datetime) -> bool:
        """Write a plan down; False if another process has planned this number already (read it with `load`)."""
        row = {
            **self._key,
            "batch": plan.number,
            "state": "planned",
            "at": at,
            "snapshot": plan.snapshot,
            "plan": plan.to_json(),
        }
        return self._small.append("batches", [row], Txn(f"{self._app}/planned", plan.number))

    def settle(self, number: int, lost: dict[str, list[dict[str, Any]]], at: datetime, held: Held = _NOTHING) -> bool:
        """Write down that a batch is done, which of its slices were lost, and what it and those before it have seen.

        False if that is written already.
        """
        row = {
            **self._key,
            "batch": number,
            "state": "settled",
            "at": at,
            "snapshot": False,
            "plan": settled_json(lost, held, self._app),
        }
        return self._small.append("batches", [row], Txn(f"{self._app}/settled", number))
