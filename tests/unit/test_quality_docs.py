"""Where reports lie, and when they go; and what a run reports."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.model.ids import MICROS
from clickjoin.quality import day_of
from clickjoin.quality.checks import Outcome, Report
from clickjoin.quality.data_docs import Docs

DAY = date(2026, 3, 1)


def micros(day: int) -> int:
    return int(datetime(2026, 3, day, tzinfo=UTC).timestamp() * MICROS)


def test_old_reports_go(tmp_path: Path) -> None:
    docs = Docs(str(tmp_path))
    runs = {
        (day, begun): Path(docs.folder(f"west-2/{micros(begun)}", date(2026, 3, day)))
        for day, begun in ((1, 2), (2, 3), (2, 9))
    }
    for folder in runs.values():
        folder.mkdir(parents=True)
        (folder.parent / "index.html").write_text("newest")
    assert docs.drop_before(datetime(2026, 3, 5, tzinfo=UTC)) == 2
    assert sorted(place.name for place in (tmp_path / "_quality").iterdir()) == ["2026-03-02"]
    assert sorted(place.name for place in runs[2, 9].parent.iterdir()) == ["index.html", f"west-2-{micros(9)}"]


def test_two_runs_at_one_moment_are_kept_apart(tmp_path: Path) -> None:
    docs = Docs(str(tmp_path))
    Path(docs.folder("main/7", DAY)).mkdir(parents=True)
    assert (docs.free("main", DAY, 7), docs.free("main", DAY, 9), docs.free("west", DAY, 7)) == (8, 9, 7)


def test_a_place_that_is_taken(tmp_path: Path) -> None:
    docs = Docs(str(tmp_path))
    docs.require_writable(DAY)
    assert list((tmp_path / "_quality").iterdir()) == []
    (tmp_path / "_quality" / "2026-03-01").write_text("")
    docs.require_writable(date(2026, 3, 2))
    with pytest.raises(LakeError, match=r"_quality: quality reports cannot be written there .*2026-03-01 is no folder"):
        docs.require_writable(DAY)


def outcome(check: str, level: str, success: bool | None) -> Outcome:
    return Outcome("foreign", check, "expect", None, level, success, 1.0, "asked", samples=({"at": DAY},))  # type: ignore[arg-type]


def test_what_is_reported() -> None:
    outcomes = (
        outcome("a", "fail", True),
        outcome("b", "warn", False),
        outcome("c", "fail", None),
        outcome("d", "fail", False),
    )
    report = Report("main/7", datetime(2026, 3, 2, tzinfo=UTC), DAY, outcomes, {"accepted": 1}, "/r", 1.23456)
    assert report.verdict == "2026-03-01: 4 checks, 1 failed, 1 warned, 1 undecided"
    data = report.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert (data["ok"], data["failed"], data["warned"], data["undecided"], data["checks"]) == (False, 1, 1, 1, 4)
    assert [(one["check"], one["state"]) for one in data["results"]] == [("b", "warned"), ("d", "failed")]
    assert Report("r", report.at, DAY, outcomes[:3], {}).ok
    assert {row["samples"] for row in report.rows()} == {'[{"at": "2026-03-01"}]'}


def test_dates() -> None:
    assert day_of("2026-03-01") == DAY
    assert day_of(None) < datetime.now(UTC).date()
    with pytest.raises(ConfigError, match="'1 March' is no date"):
        day_of("1 March")
