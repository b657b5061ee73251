"""The journal: every batch is planned in it before it starts and settled in it when it is done.

Each replica has its own, in its own partition of table `journal`; a number is planned once and settled once, anyone who
tries, because both rows are committed under a Delta transaction of that number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from clickjoin.dispatcher.committed import CommittedTxns
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.errors import LakeError
from clickjoin.model.split import SourceOffset
from clickjoin.model.txn import Txn

if TYPE_CHECKING:
    from clickjoin.engines.tables_port import Tables
    from clickjoin.lake.delta_reader import DeltaReader

SNAPSHOT_EVERY = 100
FENCE = "fence"  # in the place of a sequence: an entry of the timeline that is in force from then on (registry.reshard)
LOOK_SECONDS = 30.0  # a plan that is later than its look at the sources may have left something unread
OffsetsByStream = dict[str, dict[str, SourceOffset]]  # and by partition
Lost = Mapping[str, Mapping[str, SourceOffset | None]]  # by stream and partition: what the offset goes back to
_NOTHING = CommittedTxns()
_NO_TIMES: Mapping[str, int] = {}


@dataclass(frozen=True)
class JournalState:
    """Last batch planned (0 if none), that batch if it is not settled yet, and how far each stream has been planned.

    `held`: what its batches have seen committed. `newest`: the newest event time (microseconds) that has landed of each
    stream. `watermarks`: those of the last plan, `passed`: of the last batch that is done. `read_until` (microseconds):
    when the last batch that left nothing unread was planned, less than LOOK_SECONDS after its look.
    """

    last: int = 0
    unsettled: BatchPlan | None = None
    offsets: OffsetsByStream = field(default_factory=dict)
    held: CommittedTxns = field(default_factory=CommittedTxns)
    newest: Mapping[str, int] = field(default_factory=dict)
    watermarks: Mapping[str, int] = field(default_factory=dict)
    passed: Mapping[str, int] = field(default_factory=dict)
    read_until: int = 0


def fold(offsets: OffsetsByStream, changed: Mapping[str, Sequence[SourceOffset]]) -> None:
    """Take a plan's changed offsets into what is known so far."""
    for stream, items in changed.items():
        offsets.setdefault(stream, {}).update({item.partition: item for item in items})


def give_back(offsets: OffsetsByStream, lost: Lost) -> None:
    """Set offsets of partitions back whose splits were lost, as their sources have said."""
    for stream, partitions in lost.items():
        offsets.setdefault(stream, {}).update({name: offset for name, offset in partitions.items() if offset})


def is_settled(delta: DeltaReader, plan: BatchPlan) -> bool:
    """Whether a batch is done, by whichever copy of it."""
    return JournalReader(delta, plan.pipeline, plan.replica, plan.sequence).settled() >= plan.number


def sequences(delta: DeltaReader) -> list[tuple[str, str]]:
    """Every replica and sequence that the journal knows, from its log alone."""
    actions = delta.files("journal")
    if not actions.num_rows:
        return []
    pairs = zip(actions["partition.replica"].to_pylist(), actions["partition.sequence"].to_pylist(), strict=True)
    return sorted(pair for pair in set(pairs) if pair[1] != FENCE)


def settled_json(lost: Lost, held: CommittedTxns, app_id: str, newest: Mapping[str, int] = _NO_TIMES) -> str:
    """What column `plan` of a settled row holds."""
    payloads = {
        stream: {name: None if offset is None else offset.payload for name, offset in partitions.items()}
        for stream, partitions in lost.items()
    }
    return json.dumps({"lost": payloads, "held": held.to_plain(app_id), "newest": dict(newest)}, separators=(",", ":"))


def _lost_of(settled: Mapping[str, Any]) -> Lost:
    """What `settled_json` made of lost splits."""
    return {
        stream: {name: None if payload is None else SourceOffset(name, payload) for name, payload in partitions.items()}
        for stream, partitions in settled["lost"].items()
    }


class JournalReader:
    """The journal of one sequence of one replica, to read."""

    def __init__(self, delta: DeltaReader, pipeline: str, replica: str, sequence: str) -> None:
        self._small = delta
        self._key = {"replica": replica, "sequence": sequence}
        self.app = f"{pipeline}/{replica}/{sequence}"

    def seen(self, held: CommittedTxns) -> CommittedTxns:
        """What was held, and what this process has seen committed since."""
        return held.plus(self._small.noted.of(self.app), self._small.shown())

    def planned(self) -> int:
        """Highest batch number that has been planned, from the log alone; 0 if none."""
        return max(self._small.latest_txn_version("journal", f"{self.app}/planned"), 0)

    def settled(self) -> int:
        """Highest batch number that has been settled, from the log alone; 0 if none."""
        return max(self._small.latest_txn_version("journal", f"{self.app}/settled"), 0)

    def turn(self) -> int:
        """Number of the newest process that said it was ready to work on this sequence, from the log alone; or 0."""
        return max(self._small.latest_txn_version("journal", f"{self.app}/turn"), 0)

    def begun(self) -> int:
        """Number of the newest process that has begun to work on this sequence in its turn; 0 if none has."""
        return max(self._small.latest_txn_version("journal", f"{self.app}/begun"), 0)

    def load(self) -> JournalState:
        """State as of now; reads the rows since the last snapshot only."""
        last = self.planned()
        if not last:
            return JournalState()
        rows = list[dict[str, Any]]()
        # A plan of a table's rows is whole in itself; of a join's, each of a hundred; the last look finds any.
        for since in (last - 1, (last - 1) // SNAPSHOT_EVERY * SNAPSHOT_EVERY + 1, last - 2 * SNAPSHOT_EVERY, 1):
            rows = self._rows([("batch", ">=", since)] if since > 1 else [])
            states = {row["state"] for row in rows}
            if since <= 1 or ("settled" in states and any(row["snapshot"] for row in rows)):
                break
        plans = {row["batch"]: row for row in rows if row["state"] == "planned"}
        return self._state(last, plans, max((n for n, row in plans.items() if row["snapshot"]), default=1), rows)

    def _state(self, last: int, plans: dict[int, Any], first: int, rows: list[dict[str, Any]]) -> JournalState:
        settled = {row["batch"]: json.loads(row["plan"]) for row in rows if row["state"] == "settled"}
        latest = settled[max(settled)] if settled else {}
        held = CommittedTxns.from_plain(latest.get("held", {}), self.app)
        offsets: OffsetsByStream = {}
        plan: BatchPlan | None = None
        for number in range(first, last + 1):
            if number not in plans:
                raise self._without(number, last)
            plan = BatchPlan.from_json(plans[number]["plan"])
            fold(offsets, plan.offsets)
            if number in settled:
                give_back(offsets, _lost_of(settled[number]))
        unsettled = plan if self.settled() < last else None
        whole = (number for number in sorted(settled.keys() & plans, reverse=True) if not _lost_of(settled[number]))
        read = read_until(BatchPlan.from_json(plans[number]["plan"]) for number in whole)
        marks = plan.watermarks if plan else {}
        passed = marks if unsettled is None else _marks_of(plans.get(last - 1))
        return JournalState(last, unsettled, offsets, held, latest.get("newest", {}), marks, passed, read)

    def _without(self, number: int, last: int) -> LakeError:
        return LakeError(
            f"{self._small.path('journal')}: {last} batches of {self.app} were planned, and there is no row of batch "
            f"{number}: older data was put in its place, or rows were deleted",
            remedy="Start again: what starts says whether the tables fit together. Where it is said again: stop the "
            "joins, run `clickjoin journal rebuild --replace`, then `clickjoin verify --repair`",
        )

    def held_since(self, stream: str, mark: int | None, most: int = 2 * SNAPSHOT_EVERY) -> datetime | None:
        """When the first plan was made of those, up to the newest, that left a stream's watermark at `mark`.

        No more than `most` plans are looked at: it may have been so for longer. None where the newest has another.
        """
        last, since = self.planned(), None
        rows = self._rows([("batch", ">", last - most), ("state", "=", "planned")]) if last else []
        for row in sorted(rows, key=lambda row: row["batch"], reverse=True):
            plan = BatchPlan.from_json(row["plan"])
            if plan.watermarks.get(stream) != mark:
                break
            since = plan.planned_at
        return since

    def _rows(self, more: list[Any]) -> list[dict[str, Any]]:
        filters = [(name, "=", value) for name, value in self._key.items()]
        return list(self._small.read("journal", filters=filters + more).to_pylist())


def _marks_of(row: Mapping[str, Any] | None) -> Mapping[str, int]:
    return BatchPlan.from_json(row["plan"]).watermarks if row else {}


def read_until(done: Iterable[BatchPlan]) -> int:
    """When the first of these plans was made that left nothing unread (microseconds); 0 where none did."""
    for plan in done:
        unread = plan.backlog_events or plan.backlog_bytes
        if not unread and all(problem.kind != "unreadable" for problem in plan.problems):
            return plan.planned
    return 0


class Journal(JournalReader):
    """The journal of one sequence of one replica."""

    def __init__(self, delta: Tables, pipeline: str, replica: str, sequence: str) -> None:
        super().__init__(delta, pipeline, replica, sequence)
        self._writer = delta

    def plan(self, plan: BatchPlan, at: datetime) -> bool:
        """Write a plan down; False if another process has planned this number already (read it with `load`).

        The versions that it names are flushed first: none may be lost with the power, and the plan be kept.
        """
        for name in plan.table.versions if plan.table else ():
            self._writer.ensure_durable(name)
        row = {
            **self._key,
            "batch": plan.number,
            "state": "planned",
            "at": at,
            "snapshot": plan.snapshot,
            "plan": plan.to_json(),
        }
        return self._writer.append("journal", [row], Txn(f"{self.app}/planned", plan.number))

    def take_turn(self) -> int:
        """Say that this process is ready to work on the sequence; returns its number, higher than all before it."""
        while True:
            number = self.turn() + 1
            if self._writer.commit_txn_only("journal", Txn(f"{self.app}/turn", number)):
                return number

    def begin_turn(self, number: int) -> None:
        """Say that the process of this number works on the sequence from now on; nothing where a later one does."""
        self._writer.commit_txn_only("journal", Txn(f"{self.app}/begun", number))

    def flush(self) -> None:
        """Make what the journal holds durable: a plan may be another process's, killed before it could do so itself."""
        self._writer.ensure_durable("journal")

    def settle(
        self,
        number: int,
        lost: Lost,
        at: datetime,
        held: CommittedTxns = _NOTHING,
        newest: Mapping[str, int] = _NO_TIMES,
    ) -> bool:
        """Write down that a batch is done, which of its splits were lost, and what it and those before it have seen.

        False if that is written already.
        """
        row = {
            **self._key,
            "batch": number,
            "state": "settled",
            "at": at,
            "snapshot": False,
            "plan": settled_json(lost, held, self.app, newest),
        }
        return self._writer.append("journal", [row], Txn(f"{self.app}/settled", number))
