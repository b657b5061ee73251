"""Pure parts of the page, in a browser and without Airflow: how figures and records are spelt."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Page

from clickjoin_airflow.status.exact import exact
from clickjoin_airflow.status.files import PAGE
from tests.airflow.visit import browsing, needs_browser

pytestmark = [pytest.mark.airflow, needs_browser]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A browser on the page's files."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(PAGE)))
    Thread(target=server.serve_forever, daemon=True).start()
    with browsing() as browser:
        found = browser.new_page()
        found.goto(f"http://127.0.0.1:{server.server_port}/icon.svg")
        yield found
    server.shutdown()
    server.server_close()


def call(page: Page, module: str, name: str, value: Any) -> str:
    return str(page.evaluate(f"async (value) => (await import('/{module}.js')).{name}(value)", value))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.99996, "0.99996"), (0.999999999999, "0.999999999999"), (1, "1"), (-0.99996, "-0.99996"), (0, "0"),
        (0.30000000000000004, "0.3"), (1 / 3, "0.333"), (2.0004, "2.0004"), (3599.6, "3,600"), (None, "–"),
    ],
)  # fmt: skip
def test_no_figure_becomes_a_whole_one(page: Page, value: float | None, text: str) -> None:
    assert call(page, "format", "figure", value) == text
    assert call(page, "format", "brief", value) == text


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('{"a":1}', ["{", '  "a": 1', "}"]),
        ('{"id":9007199254740993,"x":1.0}', ["{", '  "id": 9007199254740993,', '  "x": 1.0', "}"]),
        ('{ "a" : [] , "b":{ } }', ["{", '  "a": [],', '  "b": {}', "}"]),
        ('[1,["}, \\"\\\\",null]]', ["[", "  1,", "  [", '    "}, \\"\\\\",', "    null", "  ]", "]"]),
        ('{"a":1,"a":2}', ["{", '  "a": 1,', '  "a": 2', "}"]),
        ('{"a":1', ['{"a":1']),
        ("17", ["17"]),
        ("plain: {text}", ["plain: {text}"]),
        ("", [""]),
    ],
)
def test_records_keep_every_character_of_their_values(page: Page, text: str, lines: list[str]) -> None:
    assert call(page, "indent", "indent", text).split("\n") == lines


def test_numbers_that_a_browser_would_round_are_sent_as_text(page: Page) -> None:
    given = {"id": 2**53 + 1, "n": 7, "deep": [{"x": -(2**60)}], "ok": True, "no": float("nan"), "none": None}
    sent = exact(given)
    assert sent == given | {"id": "9007199254740993", "deep": [{"x": "-1152921504606846976"}], "no": "nan"}
    assert page.evaluate("found => found", sent) == sent


def test_a_chain_runs_from_left_to_right(page: Page) -> None:
    """Each pipeline right of all that it reads; what may not be seen has a place; a circle ends."""
    parts = [
        {"pipeline": "clicks", "reads": {}},
        {"pipeline": "sales", "reads": {"primary": "clicks"}, "unread": {"primary": 3}},
        {"pipeline": "refunds", "reads": {"primary": "sales", "foreign": "returns"}},
        {"pipeline": "one", "reads": {"primary": "other"}},
        {"pipeline": "other", "reads": {"primary": "one"}},
    ]
    drawn = page.evaluate("async (parts) => (await import('/chain.js')).layout(parts)", parts)
    places = {node["name"]: (node["x"], node["y"]) for node in drawn["nodes"]}
    assert len(set(places.values())) == 6
    assert places["clicks"][0] == places["returns"][0] < places["sales"][0] < places["refunds"][0]
    edges = {(edge["from"], edge["to"], edge["stream"]): edge.get("unread") for edge in drawn["edges"]}
    assert edges["clicks", "sales", "primary"] == 3
    assert len(edges) == 5
    assert all(x < drawn["width"] and y < drawn["height"] for x, y in places.values())


def test_a_box_of_a_chain_says_all_of_it(page: Page) -> None:
    part = {"pipeline": "sales", "reads": {"primary": "clicks"}, "joined": 2, "watermark": "2026-03-01T11:50:00+00:00",
            "why": "reads on", "unread": {"primary": 1200}}  # fmt: skip
    assert call(page, "chain", "sentence", part) == (
        "sales: joined 2; complete to 2026-03-01 11:50; reads on; reads primary from clicks, 1,200 unread"
    )
    assert (
        call(page, "chain", "sentence", {"pipeline": "x", "reads": {}, "problem": "gone"}) == "x: cannot be read; gone"
    )


def _chart(**fields: Any) -> dict[str, Any]:
    at = "2026-03-01T12:0{}:00+00:00"
    signal = {"kind": "spike", "window_start": at.format(1), "window_end": at.format(2), "count": 30, "expected": 5.0,
              "low": 0.0, "high": 29.0}  # fmt: skip
    band = {
        "from": at.format(1),
        "to": at.format(2),
        "of": "spike",
        "windows": 1,
        "expected": 5.0,
        "low": 0.0,
        "high": 29.0,
    }
    return {
        "key": "<script>window.struck=1</script>", "since": at.format(0), "until": at.format(9), "seconds": 60,
        "window_seconds": 60, "watermark": at.format(7), "late": 0, "signals": [signal], "bands": [band],
        "counts": [[1772366400, 4], [1772366460, 40]],
    } | fields  # fmt: skip


def test_a_key_is_text_in_its_chart_whatever_it_looks_like(page: Page) -> None:
    script = """async (chart) => {
        const { drawing, asTable } = await import('/keychart.js');
        const drawn = drawing(chart, 600);
        document.documentElement.append(drawn);
        const scripts = drawn.querySelectorAll('script').length;
        return [drawn.outerHTML, asTable(chart).textContent, scripts, window.struck ?? null]
    }"""
    drawn, words, scripts, struck = page.evaluate(script, _chart())
    assert (scripts, struck) == (0, None)
    assert "<script" not in drawn
    assert "NaN" not in drawn
    assert "spike, 2026-03-01 12:01:00 to 2026-03-01 12:02:00: 30 events, expected 5, 0 to 29" in words


def test_a_chart_of_nothing_is_one(page: Page) -> None:
    script = "async (chart) => (await import('/keychart.js')).drawing(chart, 600).outerHTML"
    drawn = page.evaluate(script, _chart(counts=[], bands=[], signals=[], watermark=None))
    assert "NaN" not in drawn
    assert "undefined" not in drawn


def test_rows_of_a_chart_hold_what_the_picture_does(page: Page) -> None:
    found = page.evaluate("async (chart) => (await import('/keychart.js')).rows(chart)", _chart())
    assert [(row["events"], len(row["signals"]), bool(row["band"])) for row in found] == [(40, 1, True), (4, 0, False)]
    assert call(page, "keychart", "step", 80) == "20"
    assert call(page, "keychart", "step", 0.5) == "1"
