"""A pipeline's project of Great Expectations as its users have it: what they put there is run, and shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from clickjoin import quality
from clickjoin.engines.arrow import ArrowTables
from clickjoin.quality import Report
from clickjoin.quality.frames import Frames
from clickjoin.quality.project import ASSETS
from clickjoin.report import checks
from tests.sampled import in_full
from tests.spark.bench import Bench
from tests.spark.dated import DAY, lake

DOCS = Path(__file__).parents[2] / "docs/quality.md"


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


def test_the_script_of_the_docs(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """Ten lines add an expectation and run the checkpoint; the run of the DAG and the page show it red."""
    (script,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
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


@in_full
def test_rows_are_read_once_a_date(bench: Bench) -> None:
    """Each table's files, for all of its expectations, by what Spark keeps; and nothing is kept afterwards."""
    session: Any = SparkSession.getActiveSession()
    stored = session.sparkContext._jsc.sc().getRDDStorageInfo
    before = {rows.id() for rows in stored()}
    kept: list[list[str]] = []
    released = Frames.release

    def release(frames: Frames) -> None:
        kept.append([rows.name() for rows in stored() if rows.id() not in before])
        released(frames)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Frames, "release", release)
        judged(bench)
    (names,) = kept
    assert len(names) == len(ASSETS) - 3  # of a pipeline without per-key processing
    assert {rows.id() for rows in stored()} == before
