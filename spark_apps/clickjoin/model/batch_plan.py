"""A batch as frozen data: its name, what it reads and what it counts. It is written down before any work is done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from clickjoin.model.ids import MICROS
from clickjoin.model.split import Problem, SourceOffset, Split
from clickjoin.model.txn import Txn

COUNTS = (
    "primary_in", "events_in", "joined", "repeats", "wasted", "pending", "unjoinable", "expired", "filtered",
    "quarantined", "passed_over", "conflict_reruns",
)  # fmt: skip
FILL = "fill"  # in the place of a batch's sequence: what is joined of expired events, outside of batches
BY_FILL = f"split_part(token, '/', 3) = '{FILL}'"  # whether a claim is of such work: Spark SQL
STEPS = ("plan", "land", "lookup", "claim", "publish", "settle")


@dataclass(frozen=True)
class TableSplit:
    """Rows of one of the pipeline's own tables, as of one version of it: those that a retry or redrive takes up.

    `due` in microseconds since 1970: rows due by then. At most `limit` rows, oldest due first. `since` and `until`
    (microseconds): only events from `since` to before `until`. `primary`: only events whose primary event is in this
    version of table `primary`. `far`: rows due after it are taken up too (a clock that was ahead has put them off).
    `read_until` (microseconds): primary events written before that had landed when it was planned; None: all of them.
    `passed` (microseconds): rows whose primary event would lie before it are given up as absent; None: none are.
    """

    table: str
    version: int
    due: int
    limit: int
    since: int | None = None
    until: int | None = None
    primary: int | None = None
    far: int | None = None
    read_until: int | None = None
    passed: int | None = None

    @property
    def versions(self) -> dict[str, int]:
        """The version that it names of each table: it has to stay readable until the batch is settled."""
        named = {self.table: self.version} if self.table in ("pending", "unjoinable") else {}
        return named if self.primary is None else named | {"primary": self.primary}

    @property
    def where(self) -> str:
        """The range of event time as Spark SQL."""
        low = "TRUE" if self.since is None else f"unix_micros(event_time) >= {self.since}"
        return low if self.until is None else f"{low} AND unix_micros(event_time) < {self.until}"


@dataclass(frozen=True)
class BatchPlan:
    """Batch `number` of one sequence of one replica; `planned` in microseconds since 1970 is its only clock.

    `watermarks` (microseconds), by stream: no event before it is unread once this batch is settled; not of a stream of
    which that is not known.
    """

    pipeline: str
    replica: str
    sequence: str
    number: int
    planned: int
    splits: Mapping[str, tuple[Split, ...]] = field(default_factory=dict)
    offsets: Mapping[str, tuple[SourceOffset, ...]] = field(default_factory=dict)
    table: TableSplit | None = None
    problems: tuple[Problem, ...] = ()
    backlog_events: int = 0
    backlog_bytes: int = 0
    snapshot: bool = False
    watermarks: Mapping[str, int] = field(default_factory=dict)

    @property
    def token(self) -> str:
        """Who owns this batch's claims (Photon, section 3.3.2)."""
        return f"{self.txn.app_id}/{self.number}"

    @property
    def txn(self) -> Txn:
        """What makes each of this batch's commits idempotent."""
        return Txn(f"{self.pipeline}/{self.replica}/{self.sequence}", self.number)

    @property
    def planned_at(self) -> datetime:
        """When it was planned, as a datetime."""
        return datetime.fromtimestamp(self.planned / MICROS, UTC)

    def to_json(self) -> str:
        """The plan as JSON text, for the journal."""
        return json.dumps(self, default=vars, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> BatchPlan:
        """The plan that a journal row holds."""
        raw = json.loads(text)
        raw["splits"] = {name: tuple(Split(**item) for item in items) for name, items in raw["splits"].items()}
        raw["offsets"] = {name: tuple(SourceOffset(**item) for item in items) for name, items in raw["offsets"].items()}
        raw["problems"] = tuple(Problem(**item) for item in raw["problems"])
        raw["table"] = TableSplit(**raw["table"]) if raw["table"] else None
        return cls(**raw)
