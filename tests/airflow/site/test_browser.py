"""The status page in a real browser, inside Airflow's own pages: log in, look, explain, the checks of a date.

A backfill is started by the browser in ../real/test_dates.py, where there are DAGs and Spark.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.airflow.site.lake import SESSION
from tests.airflow.site.trends import EVIL
from tests.airflow.visit import WAIT, Visit, browsing, needs_browser

if TYPE_CHECKING:
    from tests.airflow.site.server import Site

pytestmark = [pytest.mark.airflow, pytest.mark.slow, needs_browser]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as started:
        yield started


@pytest.fixture(scope="module")
def visit(browser: Browser, site: Site) -> Iterator[Visit]:
    """An administrator's visit; all tests of this file but the last ones go on with it."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    found = Visit(context.new_page(), site.stack)
    found.log_in()
    yield found
    context.close()


def test_figures(visit: Visit, site: Site) -> None:
    frame = visit.open()
    expect(frame.locator("[data-replica=main] dd").first).to_have_text("2.5 s")
    expect(frame.locator("#figures article")).to_have_count(2)
    expect(frame.locator("#charts canvas")).to_have_count(6)
    expect(frame.locator("#batches tbody tr")).to_have_count(60)
    expect(frame.locator("#registry .heat td")).to_have_count(5)
    expect(frame.locator("#found .pill.failing")).to_have_text("2 failed")
    expect(frame.locator("[data-replica=main]")).to_contain_text(f"{288 * 120 - 288:,} ids accepted")
    dates = f"1 date failing newest closed {site.shop.dates[2]}"
    ago, events = ".* ago", "events from .* UTC on"
    verified = f"no faults verified {ago}, {events}; {events} {ago}{dates}"
    expect(frame.locator("#glance")).to_have_text(re.compile(verified))
    expect(frame.locator("#chain a[aria-current] text.name")).to_have_text("shop")
    expect(frame.locator("#chain text.bad")).to_have_text("cannot be read")
    assert visit.errors == []


def test_ids_that_are_too_frequent(visit: Visit, site: Site) -> None:
    """As `status` says it; what the page's own route answers is asked for in test_status."""
    said = "foreign.event_id: 12 of 40 sampled records have the id '<b>undefined'"

    def more(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"frequent_ids": [said]})

    visit.page.route("**/pipelines/shop/found", more)
    visit.page.goto(f"{site.url}/clickjoin/?ids#pipeline=shop")
    expect(visit.page.locator("#ids-notices .notice.warn")).to_have_text(said, timeout=WAIT)
    visit.page.unroute("**/pipelines/shop/found")
    visit.page.goto(visit.url)  # where the others open the page through Airflow's navigation


def test_explain(visit: Visit, site: Site) -> None:
    frame = visit.open()
    frame.get_by_label("Event id").fill(site.shop.event)
    frame.get_by_role("button", name="Explain").click()
    expect(frame.locator("#explained .pill")).to_have_text("joined", timeout=WAIT)
    expect(frame.locator("#explained .way li")).to_have_count(3)
    records = frame.locator("#explained .way li").last.locator("pre")
    assert sorted(records.all_inner_texts()) == [
        f'{{\n  "position": 1,\n  "session": {SESSION}\n}}',
        '{\n  "terms": [\n    "a",\n    {}\n  ]\n}',
    ]
    frame.get_by_label("Event id").fill("no such id")
    frame.get_by_role("button", name="Explain").click()
    expect(frame.locator("#explained")).to_contain_text("No record with this id has landed")
    frame.locator("#explained").get_by_role("button", name="Close").click()
    expect(frame.locator("#explained")).to_be_hidden()


def test_processing(visit: Visit, site: Site) -> None:
    frame = visit.open("trends")
    expect(frame.locator("#processing tbody tr")).to_have_count(3, timeout=WAIT)
    expect(frame.locator("#rests-on")).to_contain_text(f"unread in {site.folder}/logs/today.jsonl")
    frame.get_by_role("link", name=EVIL).first.click()  # a key is text, whatever it looks like
    expect(frame.locator("#key code")).to_have_text(EVIL, timeout=WAIT)
    expect(frame.locator("#key svg .mark.up")).to_have_count(1)
    expect(frame.locator("#key svg .band.now")).to_have_count(1)
    frame.get_by_text("As a table").click()
    expect(frame.locator("#key tbody")).to_contain_text("spike, ")
    frame.get_by_label("Key", exact=True).fill("hats")
    frame.get_by_role("button", name="Chart").click()
    expect(frame.locator("#key svg .mark.down .span")).to_have_count(1, timeout=WAIT)
    frame.locator("#key").get_by_role("button", name="7 days").click()
    expect(frame.locator("#key")).to_contain_text("choose a shorter range", timeout=WAIT)
    expect(frame.locator("#key svg .band")).to_have_count(0)
    frame.locator("#key").get_by_role("button", name="Close").click()
    expect(frame.locator("#key")).to_be_hidden()
    assert frame.locator("body").evaluate("() => window.struck === undefined")
    assert visit.errors == []
    visit.open()
    expect(frame.locator("#process")).to_contain_text("No signal was reported today", timeout=WAIT)


def test_checks_of_a_date(visit: Visit, site: Site) -> None:
    frame = visit.open()
    frame.locator(f"[data-date='{site.shop.dates[3]}']").click()
    checks = frame.locator("#checks")
    expect(checks).to_contain_text("clicks follow their query", timeout=WAIT)
    expect(checks.locator("h4")).to_have_text("2 of 6 quality checks did not pass")
    expect(checks).to_contain_text("found 0.99996")
    expect(checks).to_contain_text("3 rows, 20 % of them, such as 10.0.0.2:7:17")
    expect(checks.locator("li").first).to_contain_text("critical")
    undecided, passed = checks.locator("details.undecided:not(.passed)"), checks.locator("details.passed")
    expect(undecided.locator("summary")).to_have_text("1 undecided: no rows, or too few earlier dates")
    expect(undecided.locator("li")).to_be_hidden()
    passed.locator("summary").click()
    expect(passed.locator("li")).to_have_count(4)
    assert frame.locator("#range button").all_inner_texts() == ["Fill", "Rebuild"]
    over = checks.get_by_role("button", name="Over dates").first
    over.click()
    expect(checks.locator(".over-dates canvas")).to_be_visible(timeout=WAIT)
    expect(checks.locator(".over-dates .plot")).to_have_attribute("aria-label", re.compile("newest: observed 3"))
    over.click()
    expect(checks.locator(".over-dates canvas")).to_have_count(0)
    assert visit.errors == []
    assert visit.elsewhere == []


def test_who_may_only_look_starts_nothing(browser: Browser, site: Site) -> None:
    context = browser.new_context()
    visit = Visit(context.new_page(), site.stack)
    visit.log_in("looker")
    frame = visit.open()
    frame.locator(f"[data-date='{site.shop.dates[0]}']").click()
    expect(frame.locator("#day")).to_contain_text("Your role in Airflow does not allow backfills")
    expect(frame.get_by_role("button", name="Rebuild")).to_have_count(0)
    context.close()


def test_what_cannot_be_read(visit: Visit, site: Site) -> None:
    visit.page.goto(f"{site.url}/clickjoin/#pipeline=lost")
    alert = visit.page.get_by_role("alert").first
    expect(alert).to_contain_text(f"lost: {site.folder}/nowhere: the lake's folder is not there", timeout=WAIT)
    expect(alert).to_contain_text("Mount it where Airflow's API server runs")
    visit.page.get_by_role("navigation").get_by_role("link", name="shop").click()
    expect(visit.page.locator("#charts canvas").first).to_be_visible(timeout=WAIT)
    expect(visit.page.get_by_role("alert")).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_phone(visit: Visit, browser: Browser, site: Site, theme: str) -> None:
    context = browser.new_context(
        viewport={"width": 375, "height": 800},
        color_scheme="dark" if theme == "dark" else "light",
        storage_state=visit.page.context.storage_state(),
    )
    page = context.new_page()
    page.goto(f"{site.url}/clickjoin/#pipeline=shop&event={site.shop.event}")
    expect(page.locator("#registry .heat td")).to_have_count(5, timeout=WAIT)
    expect(page.locator("#explained .way li")).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    verifications = page.get_by_role("region", name="Verifications")
    assert verifications.evaluate("region => region.scrollWidth > region.clientWidth")  # inside itself
    page.set_viewport_size({"width": 1440, "height": 900})
    assert verifications.evaluate("region => region.scrollWidth <= region.clientWidth")
    page.set_viewport_size({"width": 375, "height": 800})
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    page.get_by_label("Theme").select_option("dark" if theme == "light" else "light")
    assert page.evaluate("document.documentElement.dataset.theme") != theme
    context.close()


def test_it_loads_in_a_moment(visit: Visit, site: Site) -> None:
    begun = time.perf_counter()
    visit.page.goto(f"{site.url}/clickjoin/?again#pipeline=shop")
    expect(visit.page.locator("#charts canvas")).to_have_count(6)
    print(f"figures and charts are there after {time.perf_counter() - begun:.2f} s")
