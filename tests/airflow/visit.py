"""Somebody at a browser, logged in to Airflow, who looks at the status page inside Airflow's own pages."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, ConsoleMessage, FrameLocator, Page, expect, sync_playwright

if TYPE_CHECKING:
    from stack import Stack

CHROMIUM = shutil.which("chromium")
needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no `chromium` on this machine: install Debian's package chromium"
)
WAIT = 60_000


class Visit:
    """A page that somebody is logged in on; what the browser complains of and asks elsewhere is kept."""

    def __init__(self, page: Page, stack: Stack, unreadable: str = "lost") -> None:
        """`unreadable`: a pipeline whose lake is not there, of which the browser may complain."""
        self.page, self.stack, self.url = page, stack, stack.airflow_url
        self.unreadable = f"/pipelines/{unreadable}/"
        self.errors: list[str] = []
        self.elsewhere: list[str] = []
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self._asked(request.url))

    def _said(self, message: ConsoleMessage) -> None:
        url = message.location["url"]
        if message.type == "error" and "/clickjoin/" in url and self.unreadable not in url:
            self.errors.append(f"{url}: {message.text}")

    def _asked(self, url: str) -> None:
        if not url.startswith((self.url, "data:", "blob:")):
            self.elsewhere.append(url)

    def log_in(self, user: str = "admin") -> None:
        """By Airflow's own form."""
        self.page.goto(self.url)
        self.page.locator("input[name=username]").fill(user)
        self.page.locator("input[type=password]").fill(json.loads(self.stack.home.passwords.read_text())[user])
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_role("link", name="clickjoin", exact=True)).to_be_visible(timeout=WAIT)

    def open(self, pipeline: str = "shop") -> FrameLocator:
        """The page through Airflow's navigation, with a pipeline chosen and its figures there."""
        self.page.get_by_role("link", name="clickjoin", exact=True).click()
        frame = self.page.frame_locator("iframe[title=clickjoin]")
        frame.get_by_role("navigation", name="Pipelines").get_by_role("link", name=pipeline).click(timeout=WAIT)
        expect(frame.locator("[data-replica=main] dd").first).not_to_have_text("", timeout=WAIT)
        return frame


def choose(frame: FrameLocator, first: str, last: str) -> None:
    """Mark a range of dates in the calendar."""
    frame.locator(f"[data-date='{first}']").click()
    if last != first:
        frame.locator(f"[data-date='{last}']").click(modifiers=["Shift"])


@contextmanager
def browsing() -> Iterator[Browser]:
    """Debian's chromium, without a window."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()
