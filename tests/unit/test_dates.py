"""Dates, ranges of them, and what is said of a date: pure."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.config import load
from clickjoin.dates.backfill import RawLogs
from clickjoin.dates.closing import DateResult, Order, _answer, _revision, judge
from clickjoin.dates.readiness import Watermark
from clickjoin.model.errors import ConfigError
from clickjoin.model.span import MOST_DAYS, Day, days, parse
from clickjoin.sources.files.source import FilesSource
from clickjoin.sources.port import Nothing

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
FILE = """\
pipeline: p
engine: arrow
lake: lake
primary: {source: {kind: files, path: "q/*.jsonl"}, event_id: id, event_time: embedded}
foreign: {source: {kind: files, path: "c/*.jsonl"}, event_id: id, event_time: embedded, primary_id: q,
          primary_time: embedded}
"""


@given(st.dates(date(2000, 1, 1), date(2025, 1, 1)), st.integers(0, 400))
def test_a_range_holds_each_of_its_dates_once(first: date, more: int) -> None:
    last = first + timedelta(days=more)
    found = days(str(first), str(last), NOW)
    assert [day.date for day in found] == [first + timedelta(days=nth) for nth in range(more + 1)]
    assert all(before.high == after.low for before, after in pairwise(found))
    assert all(day.high - day.low == timedelta(days=1) for day in found)


@pytest.mark.parametrize(
    ("first", "last", "message"),
    [
        ("2026-03-02", "2026-03-01", "from 2026-03-02 is after to 2026-03-01. Exchange them"),
        ("2026-03-01", "2026-03-11", "to: 2026-03-11 lies in the future"),
        ("1990-01-01", "2026-03-01", f"from 1990-01-01 to 2026-03-01 are 13209 dates. Take {MOST_DAYS} at most"),
        ("yesterday", "2026-03-01", "from: 'yesterday' is no date. Write it as 2026-03-01"),
        ("2026-02-30", "2026-03-01", "from: '2026-02-30' is no date"),
        ("2026-03-01", "", "to: '' is no date"),
    ],
)
def test_ranges_that_make_no_sense(first: str, last: str, message: str) -> None:
    with pytest.raises(ConfigError, match="^" + message.replace("(", r"\(")) as error:
        days(first, last, NOW)
    assert not error.value.retryable


class _Engine:
    def __init__(self, folder: Path) -> None:
        (folder / "p.yaml").write_text(FILE)
        self.pipeline = load(folder / "p.yaml")


FINE: dict[str, Any] = {"accepted": 1, "joined": 1, "faults": 0, "failed": 0, "pending": 0, "report": "r"}
DONE, UNREAD = Watermark(NOW, "all read"), Watermark(None, "clicks: missing")


@pytest.mark.parametrize(
    ("row", "mark", "held", "forced", "state", "detail"),
    [
        ({}, DONE, "", "", "closed", None),
        ({}, DONE, "", "by hand (r)", "closed", "by hand (r): nothing was missing"),
        ({}, Watermark(datetime(2026, 3, 1, 23, tzinfo=UTC), "b.log"), "", "", "open", "b.log"),
        ({}, UNREAD, "", "", "open", "clicks: missing"),
        ({"pending": 3}, DONE, "3 wait (a, b, c)", "", "open", "3 wait (a, b, c)"),
        ({"pending": 3}, DONE, "", "", "closed", None),
        ({"pending": 3}, UNREAD, "3 wait", "at its limit", "closed", "at its limit: not all of its input"),
        ({"faults": 2}, DONE, "", "at its limit", "failing", "2 faults"),
        ({"failed": 1, "faults": 2}, DONE, "", "", "failing", "1 quality checks failed"),
    ],
)
def test_what_is_said_of_a_date(
    row: dict[str, Any], mark: Watermark, held: str, forced: str, state: str, detail: str | None
) -> None:
    found = judge(parse("2026-03-01"), Order(forced=forced), FINE | row, mark, held)
    assert found[0] == state
    assert (found[1] is None) if detail is None else detail in str(found[1])


@pytest.mark.parametrize(
    ("before", "state", "print_", "revision"),
    [
        (None, "closed", "1:2", 1),
        (None, "open", "1:2", 0),
        ({"revision": 3, "fingerprint": "1:2"}, "closed", "1:2", 3),
        ({"revision": 3, "fingerprint": "1:2"}, "closed", "1:3", 4),
        ({"revision": 3, "fingerprint": "1:2"}, "failing", "1:3", 3),
    ],
)
def test_a_revision_is_an_output_that_was_closed(before: Any, state: str, print_: str, revision: int) -> None:
    assert _revision(before, {"state": state, "fingerprint": print_}) == revision


A_ROW = {
    "date": date(2026, 3, 1), "action": "close", "state": "closed", "fingerprint": "1:2", "run": "r1", "detail": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("before", "row", "changed"),
    [
        (None, {}, True),
        (None, {"state": "open"}, False),
        ({"fingerprint": "1:2", "run": "r0"}, {}, False),
        ({"fingerprint": "1:3", "run": "r0"}, {}, True),
        ({"fingerprint": "1:3", "run": "r0"}, {"state": "failing"}, False),
        # A task that died after it had written its row, and is tried again, must not keep silent.
        ({"fingerprint": "1:2", "run": "r1"}, {}, True),
    ],
)
def test_who_waits_for_a_date_is_notified_once(before: Any, row: dict[str, Any], changed: bool) -> None:
    assert _answer(A_ROW | row, before, DateResult(parse("2026-03-01")))["changed"] is changed


@pytest.mark.parametrize(
    ("action", "state", "ok"),
    [("close", "closed", True), ("close", "open", False), ("fill", "open", True), ("rebuild", "open", False),
     ("fill", "failing", False), ("fill", "closed", True)],
)  # fmt: skip
def test_a_fill_has_done_its_work_where_nothing_is_wrong(action: str, state: str, ok: bool) -> None:
    assert _answer(A_ROW | {"action": action, "state": state}, None, DateResult(parse("2026-03-01")))["ok"] is ok


def test_raw_logs_have_a_journal_of_their_own(tmp_path: Path) -> None:
    logs, pipeline = RawLogs(foreign="/old/*.gz"), _Engine(tmp_path).pipeline
    assert logs.replica == RawLogs(foreign="/old/*.gz").replica != RawLogs(primary="/old/*.gz").replica
    found = logs.sources(pipeline)
    assert isinstance(found["primary"], Nothing)
    assert isinstance(found["foreign"], FilesSource)
    assert not RawLogs()


def test_a_day_prints_as_its_date() -> None:
    assert str(Day(date(2026, 3, 1))) == "2026-03-01"
