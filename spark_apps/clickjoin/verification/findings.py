"""What a verification found, as frozen data, and as rows of its tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from clickjoin.model.span import Span
from clickjoin.sources.completeness import UNPROVEN
from clickjoin.verification.kinds import FAULTS, RECORDS

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


@dataclass(frozen=True)
class Report:
    """One verification.

    `seconds`: how long it took; `notes`: what was done and what could not be checked; `cut`: whether there was more to
    repair than one run does.
    """

    run: str
    at: datetime
    span: Span
    counts: tuple[Count, ...]
    seconds: float = 0.0
    notes: tuple[str, ...] = field(default=())
    cut: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong (any more)."""
        return not any(count.left for count in self.counts)

    @property
    def verdict(self) -> str:
        """In a line."""
        left = [f"{count.left} {count.kind}" for count in self.counts if count.left]
        fixed = sum(count.repaired for count in self.counts)
        first = f"faults left: {', '.join(left)}" if left else "everything is in its place"
        rest = "; run `clickjoin verify --repair` again for the rest" if left and self.cut else ""
        return f"{first}; repaired {fixed}{rest}" if fixed else first

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
