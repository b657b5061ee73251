"""Dates in a real Airflow: closed by a backfill, downstream runs once a date, rebuilt (from a
browser too), and closed again when late.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import great_expectations as gx
import pytest
from playwright.sync_api import expect

import clickjoin.quality.gx_tables  # noqa: F401, the project's own expectations
from clickjoin.engines.arrow.tables import ArrowTables
from clickjoin.report.checks import checks
from demo.backfill import backfill
from demo.lake import Lake
from tests.airflow.real.live import Live
from tests.airflow.visit import WAIT, Visit, browsing, needs_browser
from tests.sampled import in_full

pytestmark = [pytest.mark.airflow, pytest.mark.slow, in_full]  # a date is half a minute of Spark's
DAYS = ("2026-03-01", "2026-03-02")
CLICKS = 20
CLOSE, RECLOSE = "clickjoin_close_day__days", "clickjoin_reclose_changed__days"
RUNNING = ("clickjoin_join__days", "clickjoin_retry__days", CLOSE, "downstream")
REBUILD = ("--reprocess-behavior", "completed", "--dag-run-conf", '{"mode": "rebuild"}')


def event(day: str, host: str, number: int) -> str:
    """An id of an event at a quarter past some hour of a day."""
    noon = datetime.fromisoformat(day).replace(hour=number % 24, minute=15, tzinfo=UTC)
    return f"{host}:1:{int(noon.timestamp() * 1e6) + number}"


class Days:
    """The logs and tables of pipeline `days`."""

    def __init__(self, live: Live) -> None:
        self.live, self.folder = live, live.stack.pipelines
        self.lake = Lake(self.folder / "lake/days")
        for part in ("queries", "clicks"):
            (self.folder / "days-logs" / part).mkdir(parents=True)

    def write(self, day: str, numbers: range) -> None:
        """Queries, and a click on each, in files of that day."""
        logs = self.folder / "days-logs"
        with (logs / f"queries/{day}.jsonl").open("a") as queries, (logs / f"clicks/{day}.jsonl").open("a") as clicks:
            for number in numbers:
                query, click = event(day, "q", number), event(day, "c", number)
                queries.write(json.dumps({"event_id": query}) + "\n")
                clicks.write(json.dumps({"event_id": click, "query_id": query, "item_id": number}) + "\n")

    def ids(self) -> Counter[str]:
        """Ids of the output."""
        return Counter(row["event_id"] for row in self.lake.read("joined", "event_id"))

    def runs_downstream(self) -> Counter[str]:
        """How often DAG `downstream` ran for each of the days (it runs for yesterday, too)."""
        runs = [run for run in self.live.runs("downstream") if run["state"] in ("success", "queued", "running")]
        return Counter(run["partition_key"] for run in runs if run["partition_key"] in DAYS)

    def new_rows(self) -> list[dict[str, Any]]:
        """Rows of the output that the other adapter made."""
        rows = self.lake.read("joined", "event_time", "delay_seconds", "foreign_record")
        return [row for row in rows if row["delay_seconds"] == 0 and row["foreign_record"] is None]

    def backfill(self, until: str, *more: str) -> list[str]:
        """`airflow backfill create` from the first day; states of its runs when they are done."""
        return backfill(self.live.stack, CLOSE, (DAYS[0], until), lambda done: self.live.until(done, 900), *more)


@pytest.fixture(scope="module")
def days(live: Live) -> Iterator[Days]:
    yield Days(live)
    for dag in (*RUNNING, RECLOSE):  # the tests that follow have no need of them, and each costs a tenth of the machine
        live.unpause(dag, paused=True)


def test_a_backfill_closes_dates_and_tells_who_waits(days: Days) -> None:
    for day in DAYS:
        days.write(day, range(CLICKS))
    for dag in RUNNING:
        days.live.unpause(dag)
    days.live.until(lambda: len(days.ids()) == CLICKS * len(DAYS), 300)
    assert days.backfill(DAYS[-1]) == ["success"] * len(DAYS)
    days.live.until(lambda: set(DAYS) <= set(days.runs_downstream()))
    assert days.runs_downstream() == dict.fromkeys(DAYS, 1)
    rows = [row for row in days.lake.read("dates", "date", "state", "joined", "accepted") if str(row["date"]) in DAYS]
    assert {(str(row["date"]), row["state"], row["joined"], row["accepted"]) for row in rows} == {
        (day, "closed", CLICKS, CLICKS) for day in DAYS
    }


def test_a_rebuild_changes_rows_and_not_ids_and_tells_again(days: Days) -> None:
    before = days.ids()
    file = days.folder / "days.yaml"
    file.write_text(file.read_text().replace("joiner.adapter:BothRecords", "examples.adapters:TypedClick"))
    assert set(days.backfill(DAYS[0], *REBUILD)) == {"success"}
    assert days.ids() == before
    assert {str(row["event_time"].date()) for row in days.new_rows()} == {DAYS[0]}
    days.live.until(lambda: days.runs_downstream() == {DAYS[0]: 2, DAYS[1]: 1})


@needs_browser
def test_a_rebuild_is_started_from_the_calendar(days: Days) -> None:
    before = days.ids()
    with browsing() as browser:
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        visit = Visit(page, days.live.stack, unreadable="clicks")  # shown first, and joined only by later tests
        visit.log_in()
        frame = visit.open("days")
        frame.locator(f".date.closed[data-date='{DAYS[1]}']").click(timeout=WAIT)
        frame.get_by_role("button", name="Rebuild").click(timeout=WAIT)
        dialog = frame.get_by_role("dialog")
        expect(dialog).to_contain_text(f"Rebuild {DAYS[1]} of days?", timeout=WAIT)
        expect(dialog).to_contain_text("The DAG is paused: switch it on")
        dialog.get_by_role("button", name="Rebuild").click()
        expect(frame.locator("#runs")).to_contain_text(f"{DAYS[1]} to {DAYS[1]}", timeout=WAIT)
        expect(frame.locator("#runs .pill").first).to_have_text("success", timeout=10 * WAIT)
        frame.get_by_role("link", name="Open the run").click()
        expect(visit.page).to_have_url(re.compile("/dags/clickjoin_backfill__days/runs/"), timeout=WAIT)
        assert visit.errors == visit.elsewhere == []
    assert days.ids() == before
    assert len(days.new_rows()) == CLICKS * len(DAYS)
    days.live.until(lambda: days.runs_downstream() == dict.fromkeys(DAYS, 2))


def test_a_date_that_changes_late_is_closed_again(days: Days) -> None:
    days.write(DAYS[1], range(CLICKS, CLICKS + 1))
    days.live.until(lambda: len(days.ids()) == CLICKS * len(DAYS) + 1, 120)
    days.live.unpause(RECLOSE)
    before = days.runs_downstream()
    days.live.stack.api("POST", f"/dags/{RECLOSE}/dagRuns", {"logical_date": None})
    days.live.until(lambda: days.runs_downstream() == before + Counter([DAYS[1]]), 300)
    assert set(days.ids().values()) == {1}


def test_an_expectation_that_somebody_added_is_red_in_the_dag(days: Days) -> None:
    """Its date is failing in the real DAG; no DAG that waits for the date runs."""
    root, day = str(days.lake.folder), date.fromisoformat(DAYS[0])
    at_most = gx.expectations.ExpectColumnValuesToBeBetween(column="item_id", max_value=5, severity="critical")
    gx.get_context(mode="file", project_root_dir=f"{root}/_quality").suites.get("foreign").add_expectation(at_most)
    before = days.runs_downstream()
    assert days.backfill(DAYS[0], *REBUILD) == ["failed"]
    shown = checks(ArrowTables(root), day)[0]
    assert (shown["suite"], shown["check"], shown["outcome"], shown["unexpected"]) == (
        "foreign", "column_values_to_be_between.item_id", "failed", CLICKS - 6,
    )  # fmt: skip
    rows = [row for row in days.lake.read("dates", "date", "state", "at") if row["date"] == day]
    assert max(rows, key=lambda row: row["at"])["state"] == "failing"
    assert days.runs_downstream() == before


@needs_browser
def test_it_is_red_on_the_page(days: Days) -> None:
    with browsing() as browser:
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        visit = Visit(page, days.live.stack, unreadable="clicks")
        visit.log_in()
        frame = visit.open("days")
        frame.locator(f"[data-date='{DAYS[0]}']").click(timeout=WAIT)
        first = frame.locator("#checks li").first
        expect(first).to_contain_text("item_id", timeout=WAIT)
        expect(first).to_contain_text("critical")
        assert visit.errors == visit.elsewhere == []
