"""Quality of a date: a healthy one is green, and whatever is broken by hand turns exactly the right checks red."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from clickjoin import quality
from clickjoin.config.quality import SIDES, Quality
from clickjoin.engine import Engine
from clickjoin.jobs import checking
from clickjoin.lake.location import location
from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.quality import Report
from tests.sampled import in_full, some
from tests.spark.bench import Bench, click, query
from tests.spark.dated import (
    BROKEN,
    BROKEN_EVENTS,
    CORRUPT,
    DAY,
    KEEP,
    OF_THE_FILE,
    OWN,
    POSITION,
    lake,
    processed_lake,
)
from tests.spark.hand import Hand


def run(bench: Bench, **fields: Any) -> Report:
    """A run of the suites on the date, with other fields in section `quality`."""
    engine, said = bench.replica("main"), []
    bench.clock.now += 1
    if fields:
        engine.pipeline = bench.pipeline.model_copy(update={"quality": Quality.model_validate(fields)})
    report = quality.run(engine, DAY, said.append)
    assert said[-1].startswith(report.verdict)
    return report


def red(report: Report) -> set[str]:
    return {one.name for one in report.outcomes if one.success is False}


@pytest.fixture(scope="module")
def dated(make: Callable[..., Bench]) -> Bench:
    """A date with clicks that are joined, filtered and waiting; its first run; three dates before, just so."""
    return _with_history(lake(make))


@pytest.fixture(scope="module")
def processed(make: Callable[..., Bench]) -> Bench:
    """The same of one stream with per-key processing."""
    return _with_history(processed_lake(make))


def _with_history(bench: Bench) -> Bench:
    first = run(bench)
    assert (red(first), first.ok) == (set(), True)
    assert first.count("undecided") == sum(1 for one in first.outcomes if _needs_history(one.check))
    delta = bench.engine.lake.delta
    rows = delta.read("quality").to_pylist()
    delta.append("quality", [row | {"date": DAY - timedelta(days=back)} for row in rows for back in (1, 2, 3)])
    return bench


def _needs_history(check: str) -> bool:
    return check.startswith(("null_rate", "delay", "volume", "completeness", "fields", "columns"))


@pytest.fixture
def broken(dated: Bench, tmp_path: Path) -> Iterator[Hand]:
    """The first lake, to be changed: it is put back afterwards."""
    with dated.kept(tmp_path / "kept"):
        yield Hand(dated)


@pytest.fixture
def broken_events(processed: Bench, tmp_path: Path) -> Iterator[Hand]:
    """The second one."""
    with processed.kept(tmp_path / "kept"):
        yield Hand(processed)


def test_a_healthy_date(dated: Bench) -> None:
    before = {name: rows for name, rows in dated.all_tables().items() if name != "quality"}
    said: list[str] = []
    result = checking.quality(dated.spark, dated.pipeline, "main", said.append, date="2026-03-01")
    assert {name: rows for name, rows in dated.all_tables().items() if name != "quality"} == before
    assert json.loads(json.dumps(result)) == result
    assert (result["ok"], result["date"]) == (True, "2026-03-01")
    assert (result["failed"], result["warned"], result["undecided"]) == (0, 2, 0)
    late = {f"{one['suite']}.{one['check']}" for one in result["results"]}
    assert late == {"primary.freshness", "foreign.freshness"}  # by the machine's clock the date ended long ago
    places = {"joined": 48, "filtered": 12, "pending": 1, "unjoinable": 0, "expired": 0, "in_flight": 0, "forgotten": 0}
    assert result["accounts"] == places | {"accepted": 61, "nowhere": 0, "twice": 0}
    written = dated.engine.lake.delta.read("quality", [("run", "=", result["run"])]).to_pylist()
    assert {row["date"] for row in written} == {DAY}
    assert {f"{row['suite']}.{row['check']}" for row in written if not row["success"]} == late
    assert len({(row["suite"], row["check"]) for row in written}) == result["checks"] == len(written)
    seen = {f"{row['suite']}.{row['check']}": row for row in written}
    assert seen["foreign.volume"]["observed"] == 61
    assert seen["foreign.volume"]["expected"].endswith("at least 45.75 and at most 122")
    assert seen[POSITION]["expectation"] == "expect_column_values_to_be_between"
    assert seen["foreign.every_input_accounted_for"]["expectation"] == "expect_every_input_accounted_for"
    assert 0 < seen["foreign.null_rate.size"]["observed"] < 1
    assert seen["joined.not_null.token"]["expectation"] == "expect_column_values_to_not_be_null"


def results(bench: Bench) -> dict[str, Any]:
    """Great Expectations' own results of the newest run of each suite, as the project keeps them, by check."""
    kept: dict[str, Any] = {}
    for suite in (bench.disk / "_quality/gx/uncommitted/validations").iterdir():
        if newest := max(suite.rglob("*.json"), key=lambda path: path.stat().st_mtime, default=None):
            for one in json.loads(newest.read_text())["results"]:
                kept.setdefault(one["expectation_config"]["meta"]["clickjoin"]["key"], one)
    return kept


@pytest.mark.parametrize("what", some(list(BROKEN), 4))
def test_what_is_broken_is_red(broken: Hand, what: str) -> None:
    _is_red(broken, *BROKEN[what])


@pytest.mark.parametrize("what", BROKEN_EVENTS)
def test_what_is_broken_in_one_stream_is_red(broken_events: Hand, what: str) -> None:
    _is_red(broken_events, *BROKEN_EVENTS[what])


def test_each_shipped_expectation_has_a_planted_fault(dated: Bench, processed: Bench) -> None:
    """By its check and its class: what is shipped is what runs of both lakes have asked."""
    shipped, planted = set(), set()
    for bench, faults in ((dated, BROKEN), (processed, BROKEN_EVENTS)):
        rows = bench.engine.lake.delta.read("quality").to_pylist()
        kinds = {f"{row['suite']}.{row['check']}": row["expectation"] for row in rows}
        shipped |= {(_of_any_name(name), kind) for name, kind in kinds.items() if name not in OF_THE_FILE}
        planted |= {(_of_any_name(name), kinds[name]) for _, expected in faults.values() for name in expected}
    assert shipped - planted == set()


def _of_any_name(check: str) -> str:
    """A check without the name of its field or column, where each has one."""
    return re.sub(r"(null|misfit)_rate\..*", r"\1_rate", check)


def _is_red(broken: Hand, damage: Callable[[Hand], None], expected: set[str]) -> None:
    """In the report, in Great Expectations' own results, and with its rows in the table of failures."""
    damage(broken)
    report = run(broken.bench)
    assert red(report) == expected
    of_gx = {key.rpartition(" ")[0]: one for key, one in results(broken.bench).items() if not one["success"]}
    assert set(of_gx) == expected
    for one in report.outcomes:
        if one.success is False:
            assert one.detail
    failing = broken.bench.disk / "_quality/failures"
    rows = DeltaTable(str(failing)).to_pyarrow_table().to_pylist() if failing.exists() else []
    named = {f"{row['suite']}.{row['check']}" for row in rows}
    assert {name for name, one in of_gx.items() if one["result"].get("unexpected_count")} == named
    assert all(row["event_id"] or row["check"] == "not_null.event_id" for row in rows)
    assert {row["event_time"].date() for row in rows if row["suite"] != "signals"} <= {DAY}


def written(bench: Bench) -> tuple[int, list[str]]:
    """What a run leaves behind: the version of table `quality`, and files of the project."""
    pages = sorted(str(place) for place in (bench.disk / "_quality").rglob("*"))
    return bench.engine.lake.delta.version("quality"), pages


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"expectation": "expect_column_values_to_be_betwen"},
            r"quality\.expectations: .*Great Expectations has no .*did you mean ExpectColumnValuesToBeB",
        ),
        (
            {"args": {"minvalue": 0}},
            r"quality\.expectations: foreign\.column_values_to_be_between\.position: minvalue: ",
        ),
        ({"column": None}, r"quality\.expectations: .*: column: "),
    ],
)
def test_an_expectation_that_cannot_be(dated: Bench, changes: dict[str, Any], message: str) -> None:
    before = written(dated)
    with pytest.raises(ConfigError, match=message) as raised:
        run(dated, expectations=[OWN[0] | changes])
    assert "\n" not in str(raised.value)
    assert str(raised.value).endswith("nothing was checked and nothing written")
    assert written(dated) == before


WRONG = {
    "positon": {"column": "positon"},
    "itm": {"column": "payload.itm"},
    "min_value cannot be greater than max_value": {"args": {"min_value": 5, "max_value": 0}},
    "regex": {"expectation": "expect_column_values_to_match_regex", "args": {"regex": "("}},
}


def test_expectations_that_cannot_be_worked_out(dated: Bench) -> None:
    """Each is red, and says why; the others are judged."""
    report = run(dated, expectations=[OWN[0] | {"name": f"wrong{n}"} | one for n, one in enumerate(WRONG.values())])
    failed = {one.check: one for one in report.outcomes if one.success is False}
    assert sorted(failed) == [f"wrong{n}" for n in range(len(WRONG))]
    for n, message in enumerate(WRONG):
        one = failed[f"wrong{n}"]
        assert (one.suite, one.level, one.state) == ("foreign", "fail", "failed")
        assert (one.detail or "").startswith("it cannot be worked out: ")
        assert message in (one.detail or "")


def test_expectations_of_several_columns_and_none(dated: Bench) -> None:
    pair = {"column_A": "size", "column_B": "position", "or_equal": True, "ignore_row_if": "either_value_is_missing"}
    report = run(
        dated,
        expectations=[
            {"table": "foreign", "expectation": "expect_column_pair_values_a_to_be_greater_than_b", "args": pair},
            {"table": "primary", "expectation": "expect_compound_columns_to_be_unique",
             "args": {"column_list": ["item", "campaign"]}, "level": "warn"},
            {"table": "registry", "expectation": "expect_table_row_count_to_be_between", "args": {"min_value": 61}},
        ],
        levels={"registry.*": "warn"},
        disable=["*.null_rate.*", "joined.delay_*"],
    )  # fmt: skip
    assert (red(report), report.ok) == ({"foreign.column_pair_values_a_to_be_greater_than_b", *COUNT}, False)
    assert {one.level for one in report.outcomes if one.suite == "registry"} == {"warn"}
    assert not [one.name for one in report.outcomes if "null_rate" in one.name or "delay" in one.name]
    (few,) = [one for one in report.outcomes if one.name in COUNT]
    assert (few.state, few.observed) == ("warned", 60)


COUNT = {"registry.table_row_count_to_be_between"}


def test_expectations_of_side_outputs(dated: Bench, tmp_path: Path) -> None:
    """Rows of the date, and fields of their records; how many there are is known of none as well."""

    def own(table: str, expectation: str, column: str | None = None, **args: Any) -> dict[str, Any]:
        return {"table": table, "expectation": f"expect_{expectation}", "column": column, "args": args}

    asked = [
        own("filtered", "column_values_to_be_between", "payload.position", max_value=0),
        own("filtered", "column_values_to_not_be_null", "at"),
        own("unjoinable", "table_row_count_to_be_between", min_value=1),
        own("expired", "column_values_to_be_in_set", "sequence", value_set=["join"]),
        own("quarantine", "table_row_count_to_equal", value=0),
    ]
    with dated.kept(tmp_path / "kept"):
        dated.clicks(*[f"no record {n}" for n in range(3)])
        dated.join()
        report = run(dated, expectations=asked)
    found = {one.name: (one.state, one.observed) for one in report.outcomes if one.suite in SIDES}
    assert found == {
        "filtered.column_values_to_be_between.payload.position": ("failed", 12.0),
        "filtered.column_values_to_not_be_null.at": ("passed", 0.0),
        "unjoinable.table_row_count_to_be_between": ("failed", 0.0),
        "expired.column_values_to_be_in_set.sequence": ("undecided", None),
        "quarantine.table_row_count_to_equal": ("failed", 3.0),
    }


def test_a_date_without_events(dated: Bench) -> None:
    engine = dated.replica("main")
    report = quality.run(engine, date(2026, 2, 20), [].append)
    assert (report.ok, report.accounts["accepted"]) == (True, 0)
    assert {
        one.state for one in report.outcomes if one.check == "volume" or one.name in (POSITION, "joined.items")
    } == {"undecided"}


def _files(root: Path) -> list[tuple[str, int]]:
    """But the lake's clock, which is read once a minute."""
    places = (place for place in root.rglob("*") if place.is_file() and place.name != "_clock")
    return sorted((str(place), place.stat().st_mtime_ns) for place in places)


@pytest.mark.parametrize("corrupt", CORRUPT)
def test_a_corrupt_store(broken: Hand, corrupt: Callable[[Path], None]) -> None:
    if broken.bench.pipeline.needs_s3:
        pytest.skip("a bucket has no folders that a file could take the place of")
    root = broken.bench.disk
    corrupt(root)
    before = _files(root)
    with pytest.raises(LakeError, match=r"(?i)_?quality.*(cannot be (read|written)).*move") as raised:
        checking.quality(broken.bench.spark, broken.bench.pipeline, "main", [].append, date="2026-03-01")
    assert "\n" not in str(raised.value)
    assert _files(root) == before


@in_full
def test_a_store_that_breaks_meanwhile(broken: Hand) -> None:
    bench = broken.bench
    version, _ = written(bench)

    def clock() -> float:
        location(bench.pipeline.root).replace(f"quality/_delta_log/{version + 1:020}.json", b"{broken")
        return bench.clock.now

    engine = Engine(bench.spark, bench.pipeline, "main", clock=clock)
    with pytest.raises(LakeError, match="table `quality` cannot be read"):
        quality.run(engine, DAY, [].append)


def test_misfits_by_column(make: Callable[..., Bench]) -> None:
    """Half of a column's values are no numbers, of which one is read from a late query: two batches, one share."""
    bench = make(
        output={"columns": {name: {"from": f"foreign.{name}", "type": "BIGINT"} for name in ("item", "size")}},
        retention=KEEP,
    )
    asked, late = query("q"), query("late", 1)
    bench.queries(asked)
    bench.clicks(*(click(f"c{n}", 2 + n, asked, item="no" if n % 2 else n, size=n) for n in range(6)))
    bench.clicks(click("l", 9, late, item="no", size=1), click("m", 10, late, item=5, size=1))
    bench.join()
    bench.queries(late)
    bench.join()
    bench.retry(after=60)
    seen = {one.name: one for one in run(bench).outcomes}
    assert (seen["joined.misfit_rate.item"].state, seen["joined.misfit_rate.item"].observed) == ("failed", 0.5)
    assert "output.columns.item" in (seen["joined.misfit_rate.item"].detail or "")
    assert (seen["joined.misfit_rate.size"].state, seen["joined.misfit_rate.size"].observed) == ("passed", 0)
    allowed = {one.name: one.state for one in run(bench, misfits={"fail": 0.5}).outcomes}
    assert allowed["joined.misfit_rate.item"] == "passed"
