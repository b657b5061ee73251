"""Pure parts of the page, in a browser and without Airflow: how figures and records are spelt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Page, Route

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


def days(**missing: int) -> list[dict[str, Any]]:
    return [{"date": f"2026-03-0{day[1]}", "missing": count} for day, count in missing.items()]


@pytest.mark.parametrize(
    ("looks", "ids", "unsure"),
    [
        ([days(d1=0)], [], False),
        ([days(d1=7)], [], True),  # a batch may be under way
        ([days(d1=7), days(d1=7)], [["2026-03-01", 7]], False),
        ([days(d1=7), days(d1=3)], [["2026-03-01", 3]], False),
        ([days(d1=7), days(d1=0)], [], False),
        ([days(d1=7), days(d1=0), days(d1=5)], [], True),  # another batch
        ([days(d1=7), days(d1=9, d2=4)], [["2026-03-01", 7]], True),
    ],
)
def test_rows_that_are_gone_at_two_looks(page: Page, looks: list[Any], ids: list[Any], *, unsure: bool) -> None:
    script = """async (looks) => {
        const { gone, goneNotice } = await import('/gone.js');
        let found = { missing: new Map() };
        for (const days of looks) found = gone(days, found.missing);
        return [found.still, found.unsure, goneNotice(found.still)?.textContent ?? ''];
    }"""
    still, again, words = page.evaluate(script, looks)
    assert (still, again) == (ids, unsure)
    said = f"{ids[0][1]} accepted ids of 2026-03-01 are claimed and in no output: rows are gone" if ids else ""
    assert words.startswith(said)
    assert ("then Fill: it verifies the date" in words) == bool(ids)


RUNS = "/api/v2/dags/clickjoin_join__shop/dagRuns"
RETRIED = {"task_id": "join", "map_index": -1, "state": "up_for_retry", "try_number": 2}
FAILED, AGAIN, FIRST = (
    RETRIED | {"state": state, "try_number": tries} for state, tries in (("failed", 6), ("running", 3), ("running", 1))
)
WHY = "Spark does not answer at sc://127.0.0.1:15002"


def shown(
    page: Page, runs: Sequence[tuple[str, object]], *, paused: bool = False, why: str | None = WHY, opened: bool = True
) -> list[str]:
    """What the page says of a join: its notices (kind and text), then the pill beside its name.

    `runs`: state and task of each run, the newest first. A task that is text is one that Airflow does not tell of.
    `opened`: as a page that was just opened.
    """
    dag = {"dag_id": "clickjoin_join__shop", "timetable_summary": "0:01:00", "is_paused": paused}
    answers: dict[str, Any] = {"/api/v2/dags": {"dags": [dag]}}
    answers[RUNS] = {"dag_runs": [{"dag_run_id": f"r{at}", "state": state} for at, (state, _) in enumerate(runs)]}
    for at, (_, task) in enumerate(runs):
        if not isinstance(task, str):
            answers[f"{RUNS}/r{at}/taskInstances"] = {"task_instances": [task] if task else []}
        said = f"{RUNS}/r{at}/taskInstances/join/xcomEntries/clickjoin_failure"
        answers |= {said: {"value": json.dumps(why)}} if why else {}

    def answer(route: Route) -> None:
        path = route.request.url.partition("?")[0].partition("/api/v2")
        found = answers.get("".join(path[1:]))
        route.fulfill(status=200 if found else 404, json=found or {"detail": "not found"})

    if opened:
        page.goto(page.url)
    page.route("**/api/v2/**", answer)
    script = """async () => {
        for (const id of ['dags', 'dags-notices']) {
            document.getElementById(id)?.remove();
            const node = document.createElementNS('http://www.w3.org/1999/xhtml', 'div');
            node.id = id;
            document.documentElement.append(node);
        }
        await (await import('/dags.js')).showDags({ pipeline: { name: 'shop' } });
        const notices = [...document.getElementById('dags-notices').children];
        const pills = [...document.getElementById('dags').querySelectorAll('.pill')];
        const said = notices.map((one) => `${one.getAttribute('class')}: ${one.textContent}`);
        return [...said, ...pills.map((one) => one.textContent)];
    }"""
    found: list[str] = page.evaluate(script)
    page.unroute("**/api/v2/**")
    return found


AMBER = f"notice warn: join failed, and is under way again (try 3): {WHY}"
RED_RETRY = f"notice bad: join failed, and is tried again (try 2): {WHY}"
RED = f"notice bad: join failed (try 6): {WHY}"


@pytest.mark.parametrize(
    ("runs", "seen"),
    [
        ([("running", FIRST)], ["running"]),
        ([("running", RETRIED)], [RED_RETRY, "failed, and is tried again"]),
        ([("running", AGAIN)], [AMBER, "failed, and is under way again"]),
        ([("failed", FAILED), ("success", None)], [RED, "failed"]),
        # What failed is not over because the next run has begun, or waits for a slot.
        ([("running", FIRST), ("failed", FAILED)], [RED, "failed"]),
        ([("queued", None), ("failed", FAILED)], [RED, "failed"]),
        ([("running", FIRST), ("running", RETRIED)], [RED_RETRY, "failed, and is tried again"]),
        # It is over once a later one has succeeded.
        ([("running", FIRST), ("success", None), ("failed", FAILED)], ["running"]),
        ([("success", None), ("failed", FAILED)], ["success"]),
        # The newest trouble is shown, and a run whose tasks cannot be read hides no other.
        ([("running", AGAIN), ("failed", FAILED)], [AMBER, "failed, and is under way again"]),
        ([("running", "not readable"), ("failed", FAILED)], [RED, "failed"]),
        ([], ["never ran"]),
    ],
)
def test_what_failed_is_shown_until_a_later_run_succeeds(
    page: Page, runs: list[tuple[str, object]], seen: list[str]
) -> None:
    assert shown(page, runs) == seen


def test_a_reason_is_kept_while_the_next_try_is_under_way(page: Page) -> None:
    """Airflow drops what a task has said when it tries again."""
    assert shown(page, [("running", RETRIED)]) == [RED_RETRY, "failed, and is tried again"]
    assert shown(page, [("running", AGAIN)], why=None, opened=False) == [AMBER, "failed, and is under way again"]
    assert shown(page, [("running", AGAIN)], why=None)[0].endswith("(why is in the task's log)")


def test_a_failure_that_gave_no_reason_and_a_paused_dag(page: Page) -> None:
    seen = shown(page, [("running", FIRST), ("failed", FAILED)], why=None)
    assert seen == ["notice bad: join failed (try 6) (why is in the task's log)", "failed"]
    assert shown(page, [("failed", FAILED)], paused=True) == ["paused", "failed"]
