"""What can be wrong with an event or a record, how an event's tally shows it, and what was found: data and rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from clickjoin.model.extent import timestamp
from clickjoin.model.span import Span
from clickjoin.sources.completeness import OVERREAD, UNPROVEN, UNREAD


def left_over(row: Mapping[str, Any]) -> bool:
    """Whether a row of table `verification` is of faults that were not all repaired."""
    return bool(row["fault"] and (row["count"] or 0) > (row["repaired"] or 0))


# How each fault shows in an event's tally (see ids.tally): Spark SQL.
FAULTS = {
    "lost": "accepted > 0 AND outputs = 0 AND moving = 0 AND expired = 0 AND waiting = 0 AND claims = 0 "
    "AND forgotten = 0",
    "doubled": "joined > 1",
    "two_places": "places > 1 OR filtered > 1 OR unjoinable > 1",
    "output_without_claim": "outputs > 0 AND claims = 0 AND NOT old",
    "wrong_token": "claims = 1 AND outputs = 1 AND (token_low <> token_high OR NOT as_said)",
    # What a fill claims it publishes in a moment; cut short, the event is in `expired`, and the next fill's.
    "claim_without_output": "claims > 0 AND outputs = 0 AND moving = 0 AND open_claims = 0 AND forgotten = 0 "
    "AND NOT (filling > 0 AND expired > 0)",
    "doubled_claim": "claims > 1",
    "unknown_output": "outputs > 0 AND landed = 0 AND open_outputs = 0 AND kept",
    "forgotten_without_claim": "forgotten > 0 AND claims = 0 AND outputs = 0 AND NOT old",
}
# Counted, and no fault: see docs/verification.md.
NOTICES = {
    "late_repeat": "expired > 0 AND outputs > 0",
    "claimed_elsewhere": "waiting > 0 AND claims > 0",
    "in_flight": "claims > 0 AND outputs = 0 AND moving = 0 AND open_claims > 0",
    "forgotten": "forgotten > 0",
}
RECORDS = (UNREAD, OVERREAD)
TWO_TIMES = "two_times"
WRONG_PICK, LATE_TOUCH = "wrong_pick", "late_touch"  # of joins by a key and time
NOT_FORGOTTEN = "not_forgotten"  # rows that hold a record of a forgotten event
AGAIN = ("lost", "claim_without_output")  # whose events a repair dispatches again
REPAIRABLE = (*AGAIN, "output_without_claim", "doubled", "forgotten_without_claim")


def faults_sql() -> str:
    """All that is wrong with an event, a bit for each kind: Spark SQL over its tally.

    A sum, not a choice: Spark takes half a minute to think about a filter over that many ANDs and ORs.
    """
    return " + ".join(f"IF({sql}, {1 << bit}, 0)" for bit, sql in enumerate(FAULTS.values()))


def has(kind: str) -> str:
    """Whether an event has this fault, as Spark SQL over column `faults`."""
    return f"(faults & {1 << list(FAULTS).index(kind)}) <> 0"


def kept_sql(since: datetime) -> str:
    """Whether `foreign` must still hold an event's record."""
    return f"event_time >= {timestamp(since)}"


SAMPLES = 5
BYTES = (*RECORDS, UNPROVEN)  # what is counted of bytes; all else of ids


@dataclass(frozen=True)
class Count:
    """How many of one kind were found among `checked` ids (or bytes). A count that is no fault is for information."""

    kind: str
    count: int
    checked: int
    fault: bool = True
    repaired: int = 0
    samples: tuple[Mapping[str, Any], ...] = ()

    @property
    def left(self) -> int:
        """Faults that were not repaired."""
        return max(self.count - self.repaired, 0) if self.fault else 0


class Older(NamedTuple):
    """When events from before a range were `verified` last, and of when the `oldest` is that is kept."""

    verified: datetime
    oldest: datetime


@dataclass(frozen=True)
class Report:
    """One verification.

    `seconds`: how long it took; `notes`: what was done and what could not be checked; `cut`: whether there was more to
    repair than one run does; `older`: events that were not looked at, though no range was given.
    """

    run: str
    at: datetime
    span: Span
    counts: tuple[Count, ...]
    seconds: float = 0.0
    notes: tuple[str, ...] = field(default=())
    cut: bool = False
    older: Older | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong (any more)."""
        return not any(count.left for count in self.counts)

    @property
    def verdict(self) -> str:
        """In a line."""
        left = [f"{count.left} {count.kind}" for count in self.counts if count.left]
        fixed = sum(count.repaired for count in self.counts)
        first = f"faults left: {', '.join(left)}" if left else f"{self._checked}: no fault{' left' if fixed else ''}"
        rest = "; run `clickjoin verify --repair` again for the rest" if left and self.cut else ""
        done = f"{first}; repaired {fixed}{rest}" if fixed else first
        return f"{done}{self._again}{self._rest}"

    @property
    def _again(self) -> str:
        """Who joins what a repair has made pending."""
        events = sum(count.repaired for count in self.counts if count.kind in AGAIN)
        said, them = ("1 event is", "it") if events == 1 else (f"{events:,} events are", "them")
        return f"; {said} dispatched again: the running join, or `clickjoin drain`, joins {them}" if events else ""

    @property
    def _rest(self) -> str:
        if self.older is None:
            return ""
        verified, oldest = self.older
        return f"; older events were verified at {verified:%Y-%m-%d %H:%M}; all: --from {oldest:%Y-%m-%d}"

    @property
    def _checked(self) -> str:
        until = f" until {self.span.high:%Y-%m-%d %H:%M}" if self.span.high <= self.at else ""
        ids = max((count.checked for count in self.counts if count.kind in FAULTS), default=0)
        read = max((count.checked for count in self.counts if count.kind in RECORDS), default=0)
        part = f"since {self.span.low:%Y-%m-%d %H:%M}{until}"
        return f"{ids:,} ids {part} and {read:,} bytes of input checked"

    def repaired(self, done: Mapping[str, int]) -> Report:
        """The same, with what was repaired by kind."""
        counts = tuple(replace(count, repaired=done.get(count.kind, 0)) for count in self.counts)
        return replace(self, counts=counts)

    def rows(self) -> list[dict[str, Any]]:
        """Rows of table `verification`."""
        return [
            {
                "run": self.run,
                "at": self.at,
                "from_time": self.span.low,
                "to_time": self.span.high,
                "kind": count.kind,
                "fault": count.fault,
                "checked": count.checked,
                "count": count.count,
                "repaired": count.repaired,
                "samples": json.dumps(list(count.samples)),
                "seconds": round(self.seconds, 3),
            }
            for count in self.counts
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, fit for JSON and for Airflow's XCom."""
        return {
            "ok": self.ok,
            "verdict": self.verdict,
            "run": self.run,
            "from": self.span.low.isoformat(),
            "to": self.span.high.isoformat(),
            "checked": max((count.checked for count in self.counts if count.kind in (*FAULTS, *BYTES)), default=0),
            "ids": max((count.checked for count in self.counts if count.kind in FAULTS), default=0),
            "bytes": max((count.checked for count in self.counts if count.kind in BYTES), default=0),
            "seconds": round(self.seconds, 3),
            "found": {count.kind: count.count for count in self.counts if count.fault},
            "repaired": {count.kind: count.repaired for count in self.counts if count.repaired},
            "counted": {count.kind: count.count for count in self.counts if not count.fault},
            "samples": {count.kind: list(count.samples) for count in self.counts if count.samples},
            "notes": list(self.notes),
        }


def sample(rows: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    """Some rows of event_id and event_time as samples."""
    return tuple({"event_id": row["event_id"], "event_time": _iso(row["event_time"])} for row in rows[:SAMPLES])


def _iso(moment: datetime) -> str:
    return moment.isoformat()
