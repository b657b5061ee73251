"""What the log of a task says of its job's summary: short, and nothing of it left out but what is zero."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import pytest

from clickjoin.gc.collector import Collected
from clickjoin.jobs.summary_text import summary_lines
from clickjoin.lake.maintenance import Size
from clickjoin.model.reporter import figure
from clickjoin.model.split import Problem
from clickjoin.report.summary import Summary

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def outline(**more: Any) -> dict[str, Any]:
    return {"date": "2026-03-01", "state": "closed", "rows": 4000, "pending": 0, "unjoinable": 0, "expired": 0} | more


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (outline(), "- 2026-03-01, closed, 4,000 rows joined: would change nothing"),
        (
            outline(state="never closed", pending=3, unjoinable=1200),
            "- 2026-03-01, never closed, 4,000 rows joined: would try again 3 pending and 1,200 unjoinable",
        ),
        (
            outline(rebuilt=4000, missing={}, expired=2),
            "- 2026-03-01, closed, 4,000 rows joined: would rebuild 4,000 rows, try again 2 expired",
        ),
        (
            outline(rebuilt=3999, missing={"no_record": 1}),
            "- 2026-03-01, closed, 4,000 rows joined: would be refused: ids cannot be rebuilt (no record 1)",
        ),
    ],
)
def test_the_plan_of_a_dry_run(row: dict[str, Any], text: str) -> None:
    lines = summary_lines("plan_backfill", {"ok": True, "dry_run": [row], "days": []})
    assert lines == ["plan_backfill, dry run: nothing was changed", text]


def test_a_collection_and_its_notes() -> None:
    done = Collected(True, None, NOON, ("boundary held back", "primary held back"), {"registry": Size(2, 1200, 34_000)})
    done.stragglers["open"] = ("p/main/join/7", "p/main/join/8")
    lines = summary_lines("gc", done.to_dict())
    assert lines[0] == "gc, dry run: nothing was changed"
    assert "- notes: boundary held back" in lines
    assert "- notes: primary held back" in lines
    assert "- boundary: 2026-03-01T12:00:00+00:00" in lines
    assert any(line.startswith("- dropped: registry files 2, rows 1,200, bytes 34,000") for line in lines)
    assert "- stragglers: open p/main/join/7; p/main/join/8" in lines
    done.dry_run = False
    assert summary_lines("gc", done.to_dict())[0] == "gc: done"


def test_a_join_and_a_problem() -> None:
    summary = Summary(lambda _: None)
    assert summary_lines("join", summary.to_dict()) == ["join: done", "- nothing to do"]
    summary.note((Problem("missing", "/logs/clicks", "no file"),))
    summary.batches, summary.counts["joined"] = 2, 4000
    whole = summary.to_dict() | {"latency_p90": 0.81}
    assert summary_lines("join", whole) == [
        "join: done",
        "- batches: 2",
        "- joined: 4,000",
        "- latency p90: 0.81 s",
        "- problems: kind missing, path /logs/clicks, detail no file",
    ]
    assert asdict(summary.problems[0])["kind"] == "missing"


def test_a_shell_shows_all_of_it() -> None:
    summary = {"joined": 0, "ok": False, "verdict": "2 lost", "dropped": {"primary": {"rows": 0}}, "waiting": 3}
    lines = summary_lines("drain", summary | {"boundary": None, "notes": list(map(str, range(12)))}, whole=True)
    assert lines[:4] == ["drain: done", "- joined: 0", "- dropped primary: rows 0", "- boundary: none"]
    assert lines[-3:] == ["- notes: 11", "as it stands now", "- waiting: 3"]


def test_a_verdict_and_long_lists() -> None:
    summary = {"ok": False, "verdict": "2 lost", "found": {"lost": 2, "doubled": 0}, "notes": list(map(str, range(12)))}
    lines = summary_lines("verify", summary)
    assert lines[:2] == ["verify: 2 lost", "- found: lost 2"]
    assert lines[-2:] == ["- notes: 9", "- notes: 2 more"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.99996, "0.99996"), (0.9999999999999, "0.9999999999999"), (1.0, "1"), (0.00001, "1e-05"), (0, "0"),
        (0.1 + 0.2, "0.3"), (0.95, "0.95"), (1 / 3, "0.3333"), (4_140_000, "4,140,000"), (3599.99999, "3,600"),
        (-0.99996, "-0.99996"), (2.00001, "2.00001"), (5.0, "5"),
    ],
)  # fmt: skip
def test_no_figure_becomes_a_whole_one(value: float, text: str) -> None:
    assert figure(value) == text
