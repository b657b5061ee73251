"""The pictures of docs/status-page.md, taken of the page itself: `python -m tests.airflow.site.pictures [FOLDER]`.

The lake is made by hand, the DAGs are real and never run: how their runs went is said through Airflow's own API.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, expect

from bootstrap import ROOT
from stack import Stack
from tests.airflow.conftest import PIPELINE
from tests.airflow.site.server import Site, site
from tests.airflow.visit import WAIT, Visit, browsing

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 375, "height": 812}
DOCS = ROOT / "docs/pictures"
KEPT = ("light", "dark", "dates", "explain", "checks", "backfill", "runs", "phone")  # the others are to be looked at
RUNS = ("join", "retry", "gc", "verify")
_PATIENCE = 120.0  # seconds


def write_pipeline(folder: Path, name: str, lake: str = "./lake") -> Path:
    """A pipeline's file, with a little of its input unread."""
    for stream, lines in (("queries", 0), ("clicks", 40)):
        logs = folder / f"{name}-logs/{stream}"
        logs.mkdir(parents=True)
        (logs / "today.jsonl").write_text(json.dumps({"event_id": "10.0.0.2:7:1", "query_id": "x"}) * lines + "\n")
    file = folder / f"{name}.yaml"
    adapter = "clickjoin.joiner.adapter:BothRecords"
    file.write_text(PIPELINE.format(name=name, lake=lake, lease="60s", adapter=adapter))
    return file


def runs(stack: Stack, dates: Mapping[str, str]) -> None:
    """DAGs that are switched on, with a run each; no task of theirs starts, since the pool has no slots."""
    backfill = "/dags/clickjoin_backfill__shop"
    _until(lambda: "clickjoin_backfill__shop" in {one["dag_id"] for one in stack.api("GET", "/dags?limit=100")["dags"]})
    made = stack.api("POST", f"{backfill}/dagRuns", {"logical_date": None, "conf": dict(dates)})
    stack.api("PATCH", f"{backfill}/dagRuns/{made['dag_run_id']}", {"state": "success"})
    stack.api("PATCH", "/pools/default_pool?update_mask=slots", {"pool": "default_pool", "slots": 0})
    for role in RUNS:
        stack.api("PATCH", f"/dags/clickjoin_{role}__shop", {"is_paused": False})
    for role in RUNS:
        runs = f"/dags/clickjoin_{role}__shop/dagRuns"
        _until(lambda runs=runs: any(run["state"] == "running" for run in stack.api("GET", runs)["dag_runs"]))
        if role != "join":
            (run,) = stack.api("GET", runs)["dag_runs"][:1]
            stack.api("PATCH", f"{runs}/{run['dag_run_id']}", {"state": "success"})


def _until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not done():
        if time.monotonic() > end:
            raise TimeoutError("Airflow has not come that far")
        time.sleep(1)


def take(page: Page, out: Path, name: str, at: str = "") -> None:
    """A picture of what is seen, scrolled to an element."""
    if at:
        page.locator(at).first.evaluate("node => node.scrollIntoView({block: 'start'})")
    page.wait_for_timeout(300)
    if out != DOCS or name in KEPT:
        page.screenshot(path=out / f"status-{name}.png")


def wide(page: Page, found: Site, out: Path, theme: str) -> None:
    """Figures, dates, checks and an event, as on a desk."""
    day = found.shop.dates[3]
    page.goto(f"{found.url}/clickjoin/?{theme}#pipeline=shop")
    page.get_by_label("Theme").select_option(theme)
    expect(page.locator("#registry .heat td")).to_have_count(5, timeout=WAIT)
    expect(page.locator("#dags li").first).to_be_visible(timeout=WAIT)
    take(page, out, theme)
    page.locator(f"[data-date='{day}']").click()
    expect(page.locator("#checks h4")).to_be_visible(timeout=WAIT)
    suffix = "" if theme == "light" else f"-{theme}"
    take(page, out, f"dates{suffix}", "#dates-title")
    take(page, out, f"found{suffix}", "#found-title")
    page.locator("#checks").get_by_role("button", name="Over dates").first.click()
    expect(page.locator("#checks canvas")).to_be_visible(timeout=WAIT)
    take(page, out, f"checks{suffix}", "#checks")
    page.goto(f"{found.url}/clickjoin/#pipeline=shop&event={found.shop.event}")
    expect(page.locator("#explained .way li")).to_have_count(3, timeout=WAIT)
    take(page, out, f"explain{suffix}", "#explained")


def backfill(page: Page, found: Site, out: Path) -> None:
    """The dialog that asks, and the runs."""
    page.goto(f"{found.url}/clickjoin/?b#pipeline=shop")
    page.locator(f"[data-date='{found.shop.dates[1]}']").click(timeout=WAIT)
    page.locator(f"[data-date='{found.shop.dates[2]}']").click(modifiers=["Shift"])
    page.get_by_role("button", name="Fill", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_visible(timeout=WAIT)
    take(page, out, "backfill")
    page.get_by_role("button", name="Cancel").click()
    take(page, out, "runs", "#dates-title ~ h3")


def processing(page: Page, found: Site, out: Path) -> None:
    """The chart of a key."""
    page.goto(f"{found.url}/clickjoin/?p#pipeline=trends&key=shoes")
    expect(page.locator("#key svg")).to_be_visible(timeout=WAIT)
    expect(page.locator("#rests-on")).to_be_visible(timeout=WAIT)
    page.wait_for_timeout(300)
    page.locator("#key").screenshot(path=out / "status-process.png")


def phone(browser: Browser, visit: Visit, found: Site, out: Path) -> None:
    """The same on a phone, in both themes."""
    for theme in ("light", "dark"):
        context = browser.new_context(
            viewport=PHONE, color_scheme=theme, storage_state=visit.page.context.storage_state()
        )  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(f"{found.url}/clickjoin/#pipeline=shop")
        page.get_by_label("Theme").select_option(theme)
        expect(page.locator("#registry .heat td")).to_have_count(5, timeout=WAIT)
        suffix = "" if theme == "light" else f"-{theme}"
        take(page, out, f"phone{suffix}")
        take(page, out, f"phone-found{suffix}", "#found-title")
        context.close()


def main(out: Path) -> None:
    """Take all of them."""
    with (
        TemporaryDirectory() as folder,
        site(Path(folder), write_pipeline, ROOT / "dags") as found,
        browsing() as browser,
    ):
        for name in ("lost", "torn", "half"):  # what tests need, and nobody wants to see
            (found.folder / f"{name}.yaml").unlink()
        days = [str(day) for day in found.shop.dates]
        runs(found.stack, {"from": days[0], "to": days[2], "mode": "fill"})
        visit = Visit(browser.new_context(viewport=WIDE).new_page(), found.stack)
        visit.log_in()
        for theme in ("light", "dark"):
            wide(visit.page, found, out, theme)
        visit.page.get_by_label("Theme").select_option("light")
        backfill(visit.page, found, out)
        processing(visit.page, found, out)
        phone(browser, visit, found, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS)
