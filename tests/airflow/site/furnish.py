"""What other jobs write to a lake, for the status page to show: closed dates, quality runs, verifications."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from clickjoin.engines.arrow import ArrowTables

CHECKS = [
    ("joined", "ids_are_unique", "expect_column_values_to_be_unique", "event_id", "fail"),
    ("joined", "clicks_follow_their_query", "expect_column_pair_values_a_to_be_greater_than_b", "event_time", "fail"),
    ("joined", "rows_as_usual", "expect_table_row_count_to_be_between", None, "warn"),
    ("foreign", "primary_ids_are_named", "expect_column_values_to_not_be_null", "primary_id", "fail"),
    ("registry", "one_claim_an_id", "expect_column_values_to_be_unique", "event_id", "fail"),
    ("joined", "completeness", "expect_column_max_to_be_between", None, "fail"),
    ("foreign", "volume", "expect_column_max_to_be_between", "event_id", "fail"),
]
# What a check found that has no history to compare with: neither passed nor failed.
UNDECIDED = "too few earlier dates to say what is usual"


def furnish(root: Path, days: dict[date, dict[str, int]]) -> None:
    """Close all of these dates but the last one; the one before it fails two checks. `days`: counts by date."""
    delta = ArrowTables(str(root))
    _verify(delta, sorted(days))
    ordered = sorted(days)
    for number, day in enumerate(ordered):
        state = "open" if day == ordered[-1] else "failing" if day == ordered[-2] else "closed"
        _close(delta, day, days[day], state, number)


def _close(delta: ArrowTables, day: date, counts: dict[str, int], state: str, number: int) -> None:
    at = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1, hours=2)
    run = f"main/{int(at.timestamp() * 1e6)}"
    failing = state == "failing"
    if state != "open":
        delta.append("quality", [_check(run, at, day, *check, bad=failing and check[1] in _BAD) for check in CHECKS])
    details = {
        "open": "Input of this date is still unread: the logs end at 14:03",
        "failing": "2 quality checks failed",
    }
    delta.append("dates", [{
        "date": day, "at": at, "run": run, "action": "close", "state": state, "revision": 0 if state == "open" else 1,
        "detail": details.get(state), "watermark": at, "version": number, "accepted": sum(counts.values()), **counts,
        "faults": 0, "failed": len(_BAD) * failing, "warned": 0, "seconds": 31.4,
        "report": None,
    }])  # fmt: skip


def _check(
    run: str, at: datetime, day: date, suite: str, name: str, kind: str, column: str | None, level: str, *, bad: bool
) -> dict[str, Any]:
    found = {"success": True, "observed": 0.0, "unexpected": 0, "samples": "[]", "detail": None, "expected": "none"}
    if bad:
        found |= {"success": False, **_BAD[name]}
    if name == "volume":
        found |= {"success": None, "observed": 3.0, "unexpected": None, "detail": UNDECIDED}
    row = {
        "run": run,
        "at": at,
        "date": day,
        "share": None,
        "suite": suite,
        "check": name,
        "expectation": kind,
        "column": column,
    }
    return {**row, "level": level, "seconds": 4.2, **found}


_BAD: dict[str, dict[str, Any]] = {
    "clicks_follow_their_query": {
        "observed": 3.0,
        "unexpected": 3,
        "share": 0.2,
        "samples": json.dumps(["10.0.0.2:7:17"]),
        "detail": "Clicks before their query: look at the clocks of the hosts in the samples",
    },
    "completeness": {
        "observed": 0.99996,
        "unexpected": None,
        "expected": "share of the accepted ids that are joined: at least 1",
        "detail": "Did primary events come late or not at all? `clickjoin status` shows what waits",
    },
}


def _verify(delta: ArrowTables, days: list[date]) -> None:
    """A verification an hour of the last day, one of which found something; the first covered all that is kept."""
    for hour in range(6):
        at = datetime(days[-1].year, days[-1].month, days[-1].day, 10 + hour, tzinfo=UTC)
        run = {"run": f"main/{int(at.timestamp() * 1e6)}", "at": at, "to_time": at}
        run["from_time"] = at - timedelta(days=1 if hour else 9)
        row = run | {"fault": True, "count": 0, "repaired": 0, "samples": "[]", "seconds": 12.6}
        lost = {"count": 2, "repaired": 2, "samples": json.dumps([{"event_id": "10.0.0.2:7:17"}])} if hour == 2 else {}
        delta.append("verification", [
            row | {"kind": "lost", "checked": 4_140_000} | lost,
            row | {"kind": "unread", "checked": 1_250_000_000},
            row | {"kind": "claimed_elsewhere", "fault": False, "checked": 4_140_000, "count": 1200},
        ])  # fmt: skip
