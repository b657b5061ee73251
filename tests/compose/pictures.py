"""Pictures of what a browser shows of the containers' Airflow."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.airflow.visit import WAIT, browsing

WIDE = {"width": 1200, "height": 760}


def take(url: str, password: str, pipeline: str, out: Path) -> None:
    """Airflow's DAGs, the runs of one, and the status page: `containers-*.png`. What they must show is waited for."""
    out.mkdir(parents=True, exist_ok=True)
    with browsing() as browser:
        page = browser.new_page(viewport=WIDE)
        page.set_default_timeout(WAIT * 2)
        _log_in(page, url, password)
        page.goto(f"{url}/dags?name_pattern=clickjoin_")  # Airflow looks at how names begin
        expect(page.get_by_text(f"clickjoin_join__{pipeline}").first).to_be_visible(timeout=WAIT)
        page.get_by_role("button", name="Show table view").click()
        _shot(page, out / "containers-airflow.png")
        page.goto(f"{url}/dags/clickjoin_join__{pipeline}/runs")
        expect(page.get_by_text(re.compile("^success$", re.IGNORECASE)).first).to_be_visible(timeout=WAIT)
        _shot(page, out / "containers-runs.png")
        page.goto(f"{url}/clickjoin/#pipeline={pipeline}")
        expect(page.locator("[data-replica=main] dd").first).not_to_have_text("", timeout=WAIT)
        _shot(page, out / "containers-status.png")


def _log_in(page: Page, url: str, password: str) -> None:
    page.goto(url)
    page.locator("input[name=username]").fill("admin")
    page.locator("input[type=password]").fill(password)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="clickjoin", exact=True)).to_be_visible(timeout=WAIT)


def _shot(page: Page, file: Path) -> None:
    page.wait_for_timeout(3000)  # charts are drawn in a moment
    page.screenshot(path=file)
