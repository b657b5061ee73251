"""What a run reports, and of which date."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from great_expectations.core import ExpectationValidationResult
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

from clickjoin.model.errors import ConfigError
from clickjoin.quality import day_of
from clickjoin.quality.outcomes import Outcome, Report, _failing
from clickjoin.quality.outcomes import outcome as of_gx
from clickjoin.quality.shipped import said_of

DAY = date(2026, 3, 1)


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


def test_what_failed_is_named_row_by_row() -> None:
    row = {"event_id": "x", "event_time": None, "value": "a: 1"}
    bad, good = (
        replace(outcome("a", "fail", False), failing=(row,)),
        replace(outcome("b", "fail", True), failing=(row,)),
    )
    report = Report("main/7", datetime(2026, 3, 2, tzinfo=UTC), DAY, (bad, good), {})
    (found,) = report.failing()
    assert found == {
        "run": "main/7",
        "at": report.at,
        "date": DAY,
        "suite": "foreign",
        "check": "a",
        "level": "fail",
        **row,
    }
    assert "failing" not in report.rows()[0]


def test_what_was_found_instead() -> None:
    few = replace(outcome("a", "fail", False), unexpected=1200, share=0.0625)
    assert few.but == ", but 1,200 of the rows (0.0625) do not pass"
    assert [replace(few, unexpected=None, observed=value).but for value in (12.0, None)] == [", but was 12", ""]


def test_a_verdict_without_figures_counts() -> None:
    """A checkpoint whose result format is BOOLEAN_ONLY says no more than that."""
    config = ExpectationConfiguration(
        "expect_column_values_to_not_be_null", {"column": "token"},
        meta={"clickjoin": {"check": "joined.not_null.token", "asks": "none"}},
    )  # fmt: skip
    result = ExpectationValidationResult(success=False, expectation_config=config, result={}, exception_info={})
    assert [of_gx("joined", result, rows).state for rows in (3, 0)] == ["failed", "undecided"]


def test_what_is_asked_in_words() -> None:
    """Their own words, where people gave any; on the page it comes after "expected"."""
    config = ExpectationConfiguration("expect_column_values_to_be_unique", {"column": "token"}, description="once each")
    result = ExpectationValidationResult(success=True, expectation_config=config, result={}, exception_info={})
    assert of_gx("joined", result, 3).expected == "once each"
    assert said_of(config.type, {}) == "column values to be unique"


def test_long_values_are_cut() -> None:
    """Those of whole records may have megabytes."""
    (row,) = _failing({"partial_unexpected_index_list": [{"event_id": "x", "payload": "p" * 9999}]})
    assert (len(row["value"]), row["value"][-1]) == (501, "…")


def test_times_of_what_failed_are_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark gives Python the host's local time, without a zone."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        (row,) = _failing({"partial_unexpected_index_list": [{"event_id": "x", "event_time": datetime(2026, 3, 1, 9)}]})
    finally:
        monkeypatch.undo()
        time.tzset()
    assert row == {"event_id": "x", "event_time": datetime(2026, 3, 1, tzinfo=UTC), "value": None}


def test_dates() -> None:
    assert day_of("2026-03-01") == DAY
    assert day_of(None) < datetime.now(UTC).date()
    with pytest.raises(ConfigError, match="'1 March' is no date"):
        day_of("1 March")
