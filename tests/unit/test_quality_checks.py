"""Bounds and levels, what is usual, and drift of fields: the pure part of quality."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.config.quality import Quality
from clickjoin.engines.arrow import ArrowTables
from clickjoin.model.errors import LakeError
from clickjoin.quality import history, measure, suites
from clickjoin.quality.checks import Bounds, Check
from clickjoin.quality.fields import Fields, drift, gathered, json_type
from clickjoin.quality.history import History, Usual
from clickjoin.schemas import METRICS, QUALITY

DAY = date(2026, 3, 15)  # a Sunday
QUALITY_ = Quality()
FIGURE = st.floats(0, 1e9)
BOUND = st.none() | st.floats(0, 1e9)


@given(FIGURE, BOUND, BOUND)
def test_the_bounds_asked_are_broken_whenever_any_are(value: float, warn: float | None, fail: float | None) -> None:
    pair = [None if high is None else Bounds(high=high) for high in (fail, warn)]
    asked = Check("foreign", "x", "", value, *pair).asked()
    broken = [level for bounds, level in zip(pair, ("fail", "warn"), strict=True) if bounds and not bounds.hold(value)]
    if asked is None:
        assert pair == [None, None]
    else:
        assert asked[0].hold(value) == (not broken)
        assert asked[1] == broken[0] if broken else asked[1] == ("warn" if pair[1] else "fail")


def test_a_level_given_holds_for_the_tightest_bounds() -> None:
    check = Check("foreign", "volume", "", 50, Bounds(60), Bounds(80))
    assert check.asked() == (Bounds(60), "fail")
    assert check.levelled(Quality.model_validate({"levels": {"foreign.volume": "warn"}})).asked() == (
        Bounds(80),
        "warn",
    )
    strict = Quality.model_validate({"levels": {"*.volume": "fail"}})
    assert Check("foreign", "volume", "", 70, Bounds(60), Bounds(80)).levelled(strict).asked() == (Bounds(80), "fail")
    assert check.levelled(QUALITY_) is check
    assert Check("foreign", "volume", "", None, Bounds(60)).asked() is None


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


@pytest.mark.parametrize(
    ("ids", "asked"),
    [(100, "warn"), (74, "warn"), (59, "fail"), (50, "fail"), (201, "warn")],
)
def test_volume(ids: int, asked: str) -> None:
    check = suites.volume(QUALITY_, "foreign", ids, Usual(100, 5, weekday=False), "")
    found = check.asked()
    assert found is not None
    assert (found[1], found[0].hold(ids)) == (asked, ids == 100)


def test_what_cannot_be_decided_says_why() -> None:
    assert suites.volume(QUALITY_, "foreign", 5, None, "").undecided == "too few earlier dates to say what is usual"
    assert suites.volume(QUALITY_, "foreign", 5, Usual(5, 3, weekday=False), "gone").undecided == "gone"
    assert suites.completeness(QUALITY_, None, Usual(1, 3, weekday=False), "").asked() is None
    strict = Quality.model_validate({"completeness_lack": {"fail": 0.1}, "delay_p99": {"fail": "1h"}})
    assert suites.completeness(strict, 0.8, None, "").asked() == (Bounds(0.9), "fail")
    assert suites.delay(strict, "delay_p99", 4000, None).asked() == (Bounds(high=3600), "fail")
    assert suites.delay(strict, "delay_p50", 4000, None).asked() is None


def test_short_delays_are_never_slow() -> None:
    usual = Usual(0.5, 5, weekday=False)
    found = suites.delay(QUALITY_, "delay_p50", 9, usual).asked()
    assert found == (Bounds(high=10), "warn")


def fields(records: int, **types: Mapping[str, int]) -> Fields:
    return Fields(records, types)


def test_drift() -> None:
    before = {"item": "string", "position": "number", "old": "string"}
    now = fields(1000, item={"string": 990, "null": 10}, position={"string": 980, "number": 20}, new={"boolean": 500})
    found = drift(before, now)
    assert found.lost == ("old (string) is in no record", "position was number and is number|string")
    assert found.new == ("new (boolean)",)
    rare = fields(
        1000, item={"string": 1000}, position={"string": 5, "number": 995}, old={"string": 2}, odd={"array": 9}
    )
    assert (drift(before, rare).lost, drift(before, rare).new) == ((), ())
    assert now.share("item") == 0.99


@pytest.mark.parametrize(
    ("variant", "kind"),
    [("BIGINT", "number"), ("DECIMAL(2,1)", "number"), ("OBJECT<a: STRING>", "object"), ("ARRAY<VOID>", "array"),
     ("VOID", "null"), ("STRING", "string"), ("BOOLEAN", "boolean")],
)  # fmt: skip
def test_json_types(variant: str, kind: str) -> None:
    assert json_type(variant) == kind


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
    assert found.last_samples("foreign", "volume") == (DAY - timedelta(days=1), '[{"a": "string"}]')
    history.require_store(str(tmp_path))
    (tmp_path / "quality/_delta_log/00000000000000000001.json").write_text("{broken")
    with pytest.raises(LakeError, match=r"table `quality` cannot be read .*Move this folder away"):
        history.require_store(str(tmp_path))


@pytest.mark.parametrize(
    ("found", "limit", "asked"),
    [
        ((0, 50), {}, (True, "warn")),
        ((1, 50), {}, (False, "warn")),
        ((10, 50), {}, (False, "fail")),
        ((10, 50), {"misfits": {"fail": 0.5}}, (True, "fail")),
        ((10, 50), {"misfits": {}}, None),
        ((0, 0), {}, None),
        (None, {}, None),
    ],
)
def test_misfits_have_a_limit(found: tuple[int, int] | None, limit: Any, asked: tuple[bool, str] | None) -> None:
    check = suites.misfits(Quality.model_validate(limit), "price", found)
    decided = check.asked()
    assert (check.name, check.column) == ("misfit_rate.price", "price")
    assert (decided and check.observed is not None and (decided[0].hold(check.observed), decided[1])) == asked
    assert bool(check.undecided) == (asked is None)


def test_misfits_are_those_of_the_batches_that_published(tmp_path: Path) -> None:
    delta = ArrowTables(str(tmp_path))
    delta.create(METRICS)
    counted: list[tuple[str, str, int, int, dict[str, int] | None]] = [
        ("main", "join", 1, 10, {"price": 2}), ("main", "join", 2, 10, None), ("main", "retry", 1, 5, {"day": 1}),
        ("west", "join", 1, 7, {"price": 3, "day": 1}), ("west", "join", 2, 100, {"price": 100}),
    ]  # fmt: skip
    delta.append("metrics", [
        {"replica": replica, "sequence": sequence, "batch": batch, "joined": joined,
         "misfits": json.dumps(found) if found else None}
        for replica, sequence, batch, joined, found in counted
    ])  # fmt: skip
    tokens = {
        "p/main/join/1",
        "p/main/join/2",
        "p/main/retry/1",
        "p/west/join/1",
        "p/gone/join/9",
        "by hand",
        "a/b/c/d",
    }
    assert measure.misfits(delta, tokens) == ({"price": 5, "day": 2}, 32)
    assert measure.misfits(delta, {"p/main/join/9"}) is None
    assert measure.misfits(delta, ()) is None
