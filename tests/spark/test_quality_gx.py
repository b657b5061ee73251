"""A pipeline's project of Great Expectations as its users have it: what they put there is run, and shown."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect, sync_playwright

from checks.blocks import code
from clickjoin import quality
from clickjoin.cli.inspect import gx as gx_command
from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake import small_reads
from clickjoin.quality import Report
from clickjoin.quality.project import SITE
from clickjoin.report import checks
from clickjoin.spark import session
from clickjoin.spark.session import with_settings
from tests.airflow.visit import CHROMIUM, needs_browser
from tests.sampled import in_full
from tests.spark.bench import Bench
from tests.spark.dated import DAY, lake
from tests.spark.hand import Hand


@pytest.fixture(scope="module")
def checked(make: Callable[..., Bench]) -> Bench:
    found = lake(make)
    assert judged(found).ok
    return found


@pytest.fixture
def bench(checked: Bench, tmp_path: Path) -> Iterator[Bench]:
    """A lake with a project of its own, put back afterwards."""
    with checked.kept(tmp_path / "kept"):
        yield checked


def judged(bench: Bench) -> Report:
    bench.clock.now += 1
    return quality.run(bench.replica("main"), DAY, [].append)


def red(report: Report) -> dict[str, Any]:
    return {one.name: one for one in report.outcomes if one.success is False}


def gx(bench: Bench) -> Path:
    return bench.disk / "_quality/gx"


def no_other(*_: Any, **__: Any) -> Any:
    raise AssertionError("this process has a session")


def test_the_script_of_the_docs(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten lines add an expectation and run the checkpoint; the run of the DAG and the page show it red."""
    monkeypatch.setattr(session, "in_process", no_other)
    (script,) = code("quality.md", "python")
    assert len(script.strip().splitlines()) <= 10
    script = script.replace("lake/clicks/_quality", str(bench.disk / "_quality"))
    exec(compile(script, "docs/quality.md", "exec"), {})
    assert '"success": false' in capsys.readouterr().out
    found = red(judged(bench))
    assert list(found) == ["foreign.column_values_to_be_between.position_2"]  # the pipeline's file has such a one
    (one,) = found.values()
    assert (one.level, one.unexpected, one.column) == ("fail", 12, "position")
    assert one.share == pytest.approx(12 / 61)
    assert all(sample.split(":")[0] in {f"c{n:02}" for n in range(60) if n % 10 > 7} for sample in one.samples)
    shown = checks.checks(ArrowTables(bench.pipeline.root), DAY)[0]
    assert (shown["outcome"], shown["check"]) == ("failed", "column_values_to_be_between.position_2")
    assert [
        one["outcome"] for one in checks.over_dates(ArrowTables(bench.pipeline.root), shown["suite"], shown["check"])
    ]
    (sql,) = code("quality.md", "sql")
    sql = sql.replace("/data/lake/clicks", bench.pipeline.root).replace("main/1772445600000000", shown["run"])
    left_out = set()
    for table in ("joined", "filtered"):
        rows = bench.engine.lake.delta.read(table).column("event_id").to_pylist()
        left_out |= set(rows) - {
            row["event_id"] for row in bench.spark.sql(sql.replace("/joined`", f"/{table}`")).collect()
        }
    assert left_out == {row["event_id"] for row in one.failing}


def test_a_checkpoint_of_their_own_over_two_tables(bench: Bench, tmp_path: Path) -> None:
    """Its action is run, too."""
    import great_expectations as expectations
    from great_expectations.checkpoint.actions import ValidationAction

    from clickjoin.quality import gx_tables

    class Noted(ValidationAction):
        type: str = "noted"
        to: str

        def run(self, checkpoint_result: Any, action_context: Any = None) -> dict[str, Any]:
            Path(self.to).write_text(str(checkpoint_result.success))
            return {}

    assert gx_tables.SOURCE == "clickjoin"
    context = expectations.get_context(mode="file", project_root_dir=bench.disk / "_quality")
    source, made = context.data_sources.get("clickjoin"), []
    for table in ("foreign", "joined"):
        suite = expectations.ExpectationSuite(name=f"own {table}")
        suite.add_expectation(
            expectations.expectations.ExpectTableRowCountToBeBetween(max_value=50, severity="warning")
        )
        batch = source.get_asset(table).get_batch_definition("date")
        definition = expectations.ValidationDefinition(name=suite.name, data=batch, suite=context.suites.add(suite))
        made.append(context.validation_definitions.add(definition))
    noted = Noted(name="noted", to=str(tmp_path / "noted"))
    context.checkpoints.add(expectations.Checkpoint(name="own", validation_definitions=made, actions=[noted]))
    found = judged(bench)
    assert {name: (one.level, one.observed) for name, one in red(found).items()} == {
        "own foreign.table_row_count_to_be_between": ("warn", 61)
    }
    assert (tmp_path / "noted").read_text() == "False"
    assert found.ok


def test_what_goes_wrong_beside_it_takes_no_verdict(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """A result that cannot be kept, an action that raises, a query with rows, and one that cannot be."""
    import great_expectations as expectations
    from great_expectations.checkpoint import SlackNotificationAction

    made = expectations.expectations
    context = expectations.get_context(mode="file", project_root_dir=bench.disk / "_quality")
    suite = context.suites.get("foreign")
    for n, column in enumerate(("position", "gone")):
        query = f"SELECT event_id, event_time, payload FROM {{batch}} WHERE {column} > 5"
        asked = made.UnexpectedRowsExpectation(unexpected_rows_query=query, description=f"query {n}")
        suite.add_expectation(asked)
    between = {"quantiles": [0.5], "value_ranges": [[0, 9]]}  # Great Expectations' verdict is one of NumPy's
    suite.add_expectation(made.ExpectColumnQuantileValuesToBeBetween(column="position", quantile_ranges=between))
    file = bench.folder / "people.csv"
    file.write_text("name\nsomebody\n")
    people = context.data_sources.add_pandas("people").add_csv_asset("people", filepath_or_buffer=str(file))
    named = expectations.ExpectationSuite(name="people", expectations=[made.ExpectTableRowCountToEqual(value=2)])
    definition = expectations.ValidationDefinition(
        name="people", data=people.add_batch_definition("all"), suite=context.suites.add(named)
    )
    context.validation_definitions.add(definition)
    hosts = ("127.0.0.1:9", "no host")  # nobody answers at the first, and the second is none
    wrong = [SlackNotificationAction(name=host, slack_webhook=f"http://{host}", notify_on="all") for host in hosts]
    context.checkpoints.add(expectations.Checkpoint(name="people", validation_definitions=[definition], actions=wrong))
    found = judged(bench)
    failed = red(found)
    assert set(failed) == {
        *("foreign.unexpected_rows_expectation", "foreign.unexpected_rows_expectation_2", "foreign.checkpoint"),
        *("people.table_row_count_to_equal", "people.checkpoint"),
    }
    one = failed["foreign.unexpected_rows_expectation"]
    assert (one.unexpected, len(one.failing), one.expected) == (12, 12, "query 0")
    assert {row["event_time"].date() for row in one.failing} == {DAY}
    assert "not all kept" in (failed["foreign.checkpoint"].detail or "")
    assert "an action was not run" in (failed["people.checkpoint"].detail or "")
    assert "Failed to connect to Slack" in caplog.text
    assert {one.state for one in found.outcomes if "quantile" in one.check} == {"passed"}
    assert "foreign.landed_once" in {one.name for one in found.outcomes if one.success}


def test_a_suite_that_is_renamed_is_a_warning(bench: Bench) -> None:
    suites = gx(bench) / "expectations"
    (suites / "joined.json").rename(suites / "mine.json")
    (one,) = red(judged(bench)).values()
    assert (one.name, one.state) == ("mine.checkpoint", "warned")
    assert "renamed" in (one.detail or "")


def test_a_suite_that_is_broken_does_not_stop_the_others(bench: Bench) -> None:
    suite = gx(bench) / "expectations/joined.json"
    suite.write_text("{broken")
    found = judged(bench)
    (one,) = red(found).values()
    assert (one.name, one.state) == ("joined.checkpoint", "failed")
    assert "fix it in `_quality/gx`" in (one.detail or "")
    assert {one.suite for one in found.outcomes if one.success} >= {"primary", "foreign", "registry"}


@in_full
def test_an_unknown_expectation_is_a_sentence(bench: Bench) -> None:
    path = gx(bench) / "expectations/registry.json"
    suite = json.loads(path.read_text())
    suite["expectations"][0]["type"] = "expect_the_impossible"
    path.write_text(json.dumps(suite))
    found = red(judged(bench))
    assert list(found) == ["registry.checkpoint"]
    assert "expect_the_impossible" in (found["registry.checkpoint"].detail or "")


@pytest.fixture
def log(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """The events of Spark's own log, of all that is run from here on; it reads small tables, too."""
    monkeypatch.setattr(small_reads, "_ON_DISK", (0, 0))
    spark: Any = bench.spark
    context, jvm = spark.sparkContext._jsc.sc(), spark._jvm
    settings = {"compress": "false", "rolling.enabled": "false", "logStageExecutorMetrics": "false"}
    conf = context.getConf()
    for name, value in settings.items():
        conf.set(f"spark.eventLog.{name}", value)
    writer = jvm.org.apache.spark.scheduler.EventLoggingListener(
        "quality", jvm.scala.Option.empty(), jvm.java.net.URI(tmp_path.as_uri()), conf
    )
    writer.start()
    context.addSparkListener(writer)

    def written() -> list[dict[str, Any]]:
        context.listenerBus().waitUntilEmpty()
        writer.stop()
        return [json.loads(line) for line in (tmp_path / "quality").read_text().splitlines()]

    with with_settings(spark, {"spark.sql.maxMetadataStringLength": "10000"}):
        yield written
    context.removeSparkListener(writer)


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in plan["children"]:
        yield from _nodes(child)


def rows_read(events: list[dict[str, Any]], root: str) -> Counter[str]:
    """Rows that Spark has read from files, by table: the sum of what the tasks of each scan say."""
    table_of, rows = {}, Counter[str]()
    plans = [event["sparkPlanInfo"] for event in events if "sparkPlanInfo" in event]
    for node in (node for plan in plans for node in _nodes(plan) if node["nodeName"].startswith("Scan parquet")):
        (number,) = (one["accumulatorId"] for one in node["metrics"] if one["name"] == "number of output rows")
        table_of[number] = node["metadata"]["Location"].partition(f"{root}/")[2].partition("/")[0].rstrip("]")
    tasks = (event["Task Info"] for event in events if event["Event"] == "SparkListenerTaskEnd")
    for one in (one for task in tasks for one in task["Accumulables"]):
        if one["ID"] in table_of:
            rows[table_of[one["ID"]]] += int(one["Update"])
    return rows


def test_rows_are_read_once_a_date(bench: Bench, log: Callable[[], list[dict[str, Any]]]) -> None:
    """Each table's, for the expectations of all suites, by Spark's event log; and nothing is kept afterwards."""
    spark: Any = bench.spark
    infos = spark.sparkContext._jsc.sc().getRDDStorageInfo
    before = {rows.id() for rows in infos()}
    assert judged(bench).ok
    tables = ("joined", "primary", "foreign", "registry", "filtered", "pending")
    assert rows_read(log(), str(bench.disk)) == {name: len(bench.rows(name)) for name in tables}
    kept = [rows.name()[:300] for rows in infos() if rows.id() not in before]
    assert [name for name in kept if not name.startswith("Delta Table State")] == []  # what Delta keeps of logs


@needs_browser
def test_data_docs_offline(bench: Bench, tmp_path: Path) -> None:
    """They load nothing from other hosts, and what their scripts do is done: runs are listed, what passed is hidden."""
    Hand(bench).delete("joined", "c03")
    assert not judged(bench).ok
    gx_command(bench.file, to=tmp_path / "mine", offline=True)
    site, asked, wrong = tmp_path / "mine/gx" / SITE, list[str](), list[str]()
    loaded = re.compile(r"<(?:script|link|img)[^>]*https?://|url\(.?https?://")
    pages = list(site.rglob("*.html"))
    assert (len(pages), [page for page in pages if loaded.search(page.read_text())]) == (1 + 10 + 12, [])
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]).new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto((site / "index.html").as_uri())
        runs = page.locator("tr.clickable-row:visible")
        expect(runs).to_have_count(12)
        page.get_by_placeholder("Search").first.fill("clickjoin-ids")
        expect(runs).to_have_count(2)
        runs.first.click()
        expect(page.get_by_text("registry.claims_have_outputs").first).to_be_visible()
        expect(page.get_by_text("Data asset: ids")).to_be_visible()
        passed, failed = page.locator(".fa-check-circle:visible"), page.locator(".fa-times:visible")
        expect(passed.first).to_be_visible()
        page.get_by_text("Failed Only").click()
        expect(passed).to_have_count(0)
        expect(failed.first).to_be_visible()
    assert (wrong, [url for url in asked if not url.startswith(("file:", "data:"))]) == ([], [])
