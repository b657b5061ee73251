"""What is shipped with which limits, what is usual, drift of fields, what batches counted: the pure part of quality."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.config.quality import Quality
from clickjoin.engines.arrow import ArrowTables
from clickjoin.model.errors import LakeError
from clickjoin.quality import counted, history
from clickjoin.quality.fields import Fields, drift, gathered
from clickjoin.quality.history import History, Usual
from clickjoin.quality.shipped import Shipped
from clickjoin.quality.suites import Facts, shipped
from clickjoin.schemas import METRICS, QUALITY
from tests.unit.lakes import pipeline

DAY = date(2026, 3, 15)  # a Sunday
A_PIPELINE = pipeline(Path("/nowhere"))


def row(back: int, observed: float | None, run: str = "main/1", hour: int = 0, **more: Any) -> Mapping[str, Any]:
    at = datetime(2026, 3, 16, hour, tzinfo=UTC)
    known = {"run": run, "at": at, "date": DAY - timedelta(days=back), "suite": "foreign", "check": "volume"}
    return known | {"observed": observed, "samples": "[]"} | more


def test_what_is_usual() -> None:
    rows = [row(1, 10), row(2, 30), row(3, 20), row(0, 999), row(40, 999), row(4, None)]
    assert History(rows, DAY, 28, 3).usual("foreign", "volume") == Usual(20, 3, weekday=False)
    assert History(rows, DAY, 28, 4).usual("foreign", "volume") is None
    assert History(rows, DAY, 28, 3).usual("primary", "volume") is None
    again = [*rows, row(3, 40, "main/2", 1)]
    assert History(again, DAY, 28, 3).usual("foreign", "volume") == Usual(30, 3, weekday=False)


def test_the_same_weekday_counts_where_there_are_enough() -> None:
    rows = [row(back, 100 if back % 7 else 50) for back in range(1, 29)]
    assert History(rows, DAY, 28, 3).usual("foreign", "volume") == Usual(50, 4, weekday=True)
    assert History(rows, DAY, 14, 3).usual("foreign", "volume") == Usual(100, 14, weekday=False)


@given(st.lists(st.floats(0, 1e6), min_size=3, max_size=20))
def test_what_is_usual_lies_between_the_extremes(values: list[float]) -> None:
    usual = History([row(back + 1, value) for back, value in enumerate(values)], DAY, 28, 3).usual("foreign", "volume")
    assert usual is not None
    assert min(values) <= usual.value <= max(values)


def asked(usual: float | None, check: str, **quality: Any) -> dict[str, Shipped]:
    """The expectations of a check by level, where its figure was so much at each of the last three dates."""
    suite, _, name = check.partition(".")
    rows = [row(back, usual, suite=suite, check=name) for back in (1, 2, 3)]
    pipeline = A_PIPELINE.model_copy(update={"quality": Quality.model_validate(quality)})
    made = shipped(pipeline, Facts(History(rows, DAY, 28, 3), {"foreign": ("item",)}))
    return {one.level: one for one in made if one.check == check}


def bounds(found: Mapping[str, Shipped]) -> dict[str, tuple[float | None, float | None]]:
    return {level: (one.args.get("min_value"), one.args.get("max_value")) for level, one in found.items()}


@pytest.mark.parametrize(("back", "value", "found"), [(1, 100, 100), (1, 0, None), (2, 100, None)])
def test_the_day_before(back: int, value: float, found: float | None) -> None:
    assert History([row(back, value)], DAY, 28, 3).day_before("foreign", "volume") == found


def test_volume() -> None:
    found = asked(100, "foreign.volume")
    assert bounds(found) == {"fail": (60, None), "warn": (75, 200)}
    assert (
        found["warn"].asks
        == "distinct ids of the date (usually 100, median of 3 earlier dates): at least 75 and at most 200"
    )
    assert {one.undecided for one in found.values()} == {""}


@pytest.mark.parametrize(
    "check", ["foreign.volume", "joined.completeness", "joined.delay_p50", "foreign.null_rate.item"]
)
def test_what_cannot_be_decided_is_measured(check: str) -> None:
    """It says why, and nothing that it finds can be red."""
    (one,) = asked(None, check).values()
    assert one.undecided == "too few earlier dates to say what is usual"
    assert (one.args.get("min_value", 0), one.args.get("max_value")) == (0, None)


def test_limits_of_the_file_need_no_history() -> None:
    strict = {"completeness_lack": {"fail": 0.1}, "delay_p99": {"fail": "1h"}}
    assert bounds(asked(None, "joined.completeness", **strict)) == {"fail": (0.9, None)}
    assert bounds(asked(None, "joined.delay_p99", **strict)) == {"fail": (None, 3600)}
    assert asked(None, "joined.delay_p50", **strict)["warn"].undecided


def test_short_delays_are_never_slow() -> None:
    assert bounds(asked(0.5, "joined.delay_p50")) == {"warn": (None, 10)}


def test_rates_are_said_of_what_does_not_pass() -> None:
    (one,) = asked(None, "foreign.repeat_rate").values()
    assert (bounds({"warn": one}), one.asks) == (
        {"warn": (0.9, None)},
        "share of the records whose id was there before: at most 0.1",
    )
    assert bounds(asked(0.5, "foreign.null_rate.item")) == {"fail": (None, 0.75), "warn": (None, 0.55)}


def test_a_level_given_holds_for_the_tightest_bounds() -> None:
    assert bounds(asked(100, "foreign.volume", levels={"foreign.volume": "fail"})) == {"fail": (75, 200)}
    assert bounds(asked(100, "foreign.volume", levels={"*.volume": "warn"})) == {"warn": (75, 200)}
    assert [one.level for one in asked(None, "joined.unique_ids", levels={"joined.*": "warn"}).values()] == ["warn"]
    assert asked(100, "foreign.volume", disable=["*.volume"]) == {}


def test_expectations_of_the_file() -> None:
    own = {"table": "joined", "expectation": "expect_column_values_to_be_between", "column": "foreign_record.position"}
    pair = {"column_A": "payload.size", "column_B": "position"}
    more = {"table": "foreign", "expectation": "expect_column_pair_values_to_be_equal", "args": pair}
    wanted = [own | {"args": {"min_value": 1}, "name": "positions"}, more]
    (one,) = asked(None, "joined.positions", expectations=wanted).values()
    assert (one.kind, one.args) == ("ExpectColumnValuesToBeBetween", {"min_value": 1, "column": "foreign.position"})
    (two,) = asked(None, "foreign.column_pair_values_to_be_equal", expectations=wanted).values()
    assert two.args == {"column_A": "size", "column_B": "position"}


def test_ids_alone_are_unique_where_they_name_an_event() -> None:
    assert asked(None, "joined.unique_ids")["fail"].args == {"column_list": ["event_id", "event_time"]}
    by_id = A_PIPELINE.model_copy(update={"registry": A_PIPELINE.registry.model_copy(update={"identity": "id"})})
    (one,) = [one for one in shipped(by_id, Facts(History((), DAY, 0, 1))) if one.check == "joined.unique_ids"]
    assert (one.kind, one.args) == ("ExpectColumnValuesToBeUnique", {"column": "event_id"})


def fields(records: int, **types: Mapping[str, int]) -> Fields:
    return Fields(records, types)


def test_drift() -> None:
    before = {"item": "string", "position": "number", "old": "string"}
    now = fields(1000, item={"string": 990, "null": 10}, position={"string": 980, "number": 20}, new={"boolean": 500})
    lost, new = drift(before, now)
    assert lost == ["old (string) is in no record", "position was number and is number|string"]
    assert new == ["new (boolean)"]
    rare = fields(
        1000, item={"string": 1000}, position={"string": 5, "number": 995}, old={"string": 2}, odd={"array": 9}
    )
    assert drift(before, rare) == ([], [])
    assert now.share("item") == 0.99


@pytest.mark.parametrize(
    ("variant", "kind"),
    [("BIGINT", "number"), ("DECIMAL", "number"), ("OBJECT", "object"), ("ARRAY", "array"),
     ("VOID", "null"), ("STRING", "string"), ("BOOLEAN", "boolean")],
)  # fmt: skip
def test_json_types(variant: str, kind: str) -> None:
    assert gathered(1, [("a", variant, 1)]).counts == {"a": {kind: 1}}


def test_types_of_a_field_are_summed() -> None:
    found = gathered(10, [("a", "BIGINT", 3), ("a", "DOUBLE", 4), (None, None, 1), ("b", None, 2)])
    assert found.counts == {"a": {"number": 7}, "b": {"null": 2}}
    assert found.types() == {"a": "number", "b": ""}
    assert found.schema() == {"a": "number"}


def test_the_store(tmp_path: Path) -> None:
    history.require_store(str(tmp_path))
    delta = ArrowTables(str(tmp_path))
    delta.create(QUALITY)
    whole = dict.fromkeys(QUALITY.names) | row(1, 7, samples=json.dumps([{"a": "string"}]))
    delta.append("quality", [whole])
    found = history.read(delta, DAY, 28, 1)
    assert found.usual("foreign", "volume") == Usual(7, 1, weekday=False)
    assert found.schema("foreign", "none", "volume") == ("2026-03-14", {"a": "string"})
    assert found.schema("foreign", "none") == ("", {})
    history.require_store(str(tmp_path))
    (tmp_path / "quality/_delta_log/00000000000000000001.json").write_text("{broken")
    with pytest.raises(LakeError, match=r"table `quality` cannot be read .*Move this folder away"):
        history.require_store(str(tmp_path))


def test_a_table_of_an_earlier_version_has_no_share_yet(tmp_path: Path) -> None:
    delta = ArrowTables(str(tmp_path))
    delta.create(replace(QUALITY, columns=tuple(column for column in QUALITY.columns if column.name != "share")))
    history.require_store(str(tmp_path))
    for share in (0.5, 0.25):
        delta.add_columns("quality", history.LATER)
        delta.append("quality", [dict.fromkeys(QUALITY.names) | row(1, 7, share=share)])
    assert sorted(delta.read("quality")["share"].to_pylist()) == [0.25, 0.5]


def test_what_batches_counted(tmp_path: Path) -> None:
    delta = ArrowTables(str(tmp_path))
    delta.create(METRICS)
    batches: list[tuple[str, str, int, int, dict[str, int] | None]] = [
        ("main", "join", 1, 10, {"price": 2}), ("main", "join", 2, 10, None), ("main", "retry", 1, 5, {"day": 1}),
        ("west", "join", 1, 7, {"price": 3, "day": 1}), ("west", "join", 2, 100, {"price": 100}),
    ]  # fmt: skip
    delta.append("metrics", [
        {"replica": replica, "sequence": sequence, "batch": batch, "joined": joined, "events_in": joined,
         "primary_in": 1, "quarantined": 2, "misfits": json.dumps(found) if found else None}
        for replica, sequence, batch, joined, found in batches
    ])  # fmt: skip
    tokens = {
        "p/main/join/1",
        "p/main/join/2",
        "p/main/retry/1",
        "p/west/join/1",
        "p/gone/join/9",
        "by hand",
        "a/b/c/d",
        None,
    }
    found = counted.counted(delta, {("main", 1), ("east", 4)}, tokens, ("price", "day"))
    assert found == [
        {"replica": "main", "sequence": "join", "batch": 1, "records": 13, "quarantined": 2, "published": 10,
         "misfits_price": 2, "misfits_day": 0},
        {"replica": "main", "sequence": "join", "batch": 2, "published": 10, "misfits_price": 0, "misfits_day": 0},
        {"replica": "main", "sequence": "retry", "batch": 1, "published": 5, "misfits_price": 0, "misfits_day": 1},
        {"replica": "west", "sequence": "join", "batch": 1, "published": 7, "misfits_price": 3, "misfits_day": 1},
    ]  # fmt: skip
    assert counted.counted(delta, (), {"p/main/join/9"}, ()) == []
