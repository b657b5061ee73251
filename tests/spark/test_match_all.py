"""All touches of a window in one row (`match.pick: all`), compared with a few lines of plain Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
import yaml

from clickjoin.dates.closing import Order, close
from clickjoin.dates.late_events import context
from clickjoin.dates.rebuild import rebuild
from clickjoin.engines.extents import extents
from clickjoin.jobs.upkeep import forget
from clickjoin.model.batch_plan import FILL
from clickjoin.model.ids import MICROS
from clickjoin.model.span import Day
from clickjoin.report.explain import explain
from tests.sampled import in_full
from tests.spark.bench import NOON, Bench
from tests.spark.hand import Hand, found, verify
from tests.spark.test_match import DAY, SKEW, WITHIN, Record, at, decided, fields, order, output, pass_by, touch

OUTPUT = {
    "columns": {
        "channel": {"from": "primary.channel", "type": "STRING", "default": "none"},
        "cost": {"from": "primary.cost", "type": "DECIMAL(9, 2)"},
        "who": {"from": "foreign.user.id", "type": "STRING"},
    },
    "records": "none",
}


def of_all(limit: int | None = None, **more: Any) -> Record:
    whole = fields("all", **{"output": OUTPUT} | more)
    whole["foreign"]["match"] = whole["foreign"]["match"] | ({"limit": limit} if limit else {})
    return whole


def truth(touches: list[Record], orders: list[Record], limit: int) -> dict[str, Any]:
    """By order: how many touches, and of those that are kept position, id and time (seconds after noon)."""

    def time(record: Record) -> float:
        return round(datetime.fromisoformat(record["at"]).timestamp() - NOON, 6)

    first: dict[tuple[str, str], float] = {}
    for one in touches:
        if (one["who"] or "").strip():
            first[one["who"], one["id"]] = min(time(one), first.get((one["who"], one["id"]), 1e9))
    answers = {}
    for one in orders:
        fits = sorted(
            (when, name.encode(), name)
            for (key, name), when in first.items()
            if key == one["user"]["id"] and name != one["id"] and -SKEW <= round(time(one) - when, 6) <= WITHIN
        )
        whole = [(number, name, when) for number, (when, _, name) in enumerate(fits, 1)]
        if whole:
            answers[one["id"]] = (len(whole), whole if len(whole) <= limit else [whole[0], *whole[1 - limit :]])
    return answers


def touched(bench: Bench) -> dict[str, Any]:
    """The same of the output. No id is there twice, and the last touch is the row's own."""
    rows = bench.engine.lake.delta.read("joined").to_pylist()
    assert len({row["event_id"] for row in rows}) == len(rows)
    for row in rows:
        last = row["touches"][-1]
        assert (row["primary_id"], row["primary_time"]) == (last["event_id"], last["event_time"])
        assert row["touch_count"] == last["position"]
        assert (row["channel"], row["cost"]) == (last["channel"], last["cost"])
    return {row["event_id"]: (row["touch_count"], list(map(_touch, row["touches"]))) for row in rows}


def _touch(one: Record) -> tuple[int, str, float]:
    return one["position"], one["event_id"], round(one["event_time"].timestamp() - NOON, 6)


@pytest.mark.parametrize(("seed", "limit"), [(1, 3), (2, None)])
def test_each_row_has_the_touches_of_its_window(make: Callable[..., Bench], seed: int, limit: int | None) -> None:
    """Whatever the order in which both arrive, and in whichever batches."""
    bench = make(**of_all(limit, close={"max_out_of_orderness": "300s"}))
    touches, orders = decided(bench, seed)
    expected = truth(touches, orders, limit or 1000)
    assert touched(bench) == expected
    assert {name for (name,) in bench.rows("unjoinable", "event_id")} == {one["id"] for one in orders} - expected.keys()
    assert bench.accounts()["agree"]
    report = verify(bench)
    assert not found(report)
    assert not [count for count in report.counts if count.kind == "late_touch" and count.count]
    before = bench.engine.lake.delta.read("joined").sort_by("event_id").select(["event_id", "touches", "touch_count"])
    rebuild(bench.engine, DAY, round(bench.clock.now * MICROS))
    after = bench.engine.lake.delta.read("joined").sort_by("event_id").select(["event_id", "touches", "touch_count"])
    assert after.equals(before)


@in_full
@pytest.mark.parametrize("limit", [2, 5, None])
@pytest.mark.parametrize("seed", range(10, 20))
def test_worlds(make: Callable[..., Bench], seed: int, limit: int | None) -> None:
    test_each_row_has_the_touches_of_its_window(make, seed, limit)


T1, T2, T3 = (touch(f"t{n}", 10 * n, "u", channel=f"c{n}", cost=n) for n in (1, 2, 3))


@pytest.fixture
def waiting(make: Callable[..., Bench]) -> Bench:
    """An order that has come before the stream of touches has passed its time."""
    bench = make(**of_all(2))
    bench.queries(T1)
    bench.clicks(order("o", 40, "u"), order("none", 31, "nobody"), order("other", 32, "v"))
    bench.join()
    bench.queries(T2, T3, touch("v1", 5, "v"), touch("v2", 6, "v"))
    pass_by(bench, 60)
    return bench


def kinds(bench: Bench) -> dict[str, list[str]]:
    counts = [count for count in verify(bench).counts if count.kind in ("wrong_pick", "late_touch") and count.count]
    return {count.kind: [one["event_id"] for one in count.samples] for count in counts}


def test_what_is_kept_of_many(waiting: Bench) -> None:
    found_ = touched(waiting)
    assert found_ == {"o": (3, [(1, "t1", 10), (3, "t3", 30)]), "other": (2, [(1, "v1", 5), (2, "v2", 6)])}
    rows = waiting.engine.lake.delta.read("joined", [("event_id", "=", "o")]).to_pylist()
    assert [(one["channel"], str(one["cost"])) for one in rows[0]["touches"]] == [("c1", "1.00"), ("c3", "3.00")]
    assert rows[0]["who"] == "u"
    assert not kinds(waiting)
    said = json.loads(json.dumps(explain(waiting.pipeline, waiting.engine.lake.delta, "o"), default=str))
    assert [one["why"] for one in said["candidates"]["events"]] == [
        "touch 1 of 3, joined", "touch 2 of 3, left out by match.limit", "touch 3 of 3, joined"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("late", "count", "first", "last"),
    [
        (touch("late", 15, "u"), 4, ("t1", 10), ("t3", 30)),
        (touch("first", 1, "u"), 4, ("first", 1), ("t3", 30)),
        (touch("t3", 25, "u"), 3, ("t1", 10), ("t3", 25)),
    ],
)
def test_a_touch_that_comes_too_late_is_seen_and_taken_up_by_a_rebuild(
    waiting: Bench, late: Record, count: int, first: Any, last: Any
) -> None:
    """Also where it is not kept, or another copy of one that is there."""
    waiting.queries(late)
    waiting.clock.now += 60
    waiting.join()
    assert kinds(waiting) == {"late_touch": ["o"]}
    rebuild(waiting.engine, DAY, round(waiting.clock.now * MICROS))
    assert touched(waiting)["o"] == (count, [(1, *first), (count, *last)])
    assert not kinds(waiting)


@pytest.mark.parametrize("change", [
    {"touch_count": "2"}, {"touches": "NULL"}, {"primary_id": "'t1'"},
    {"touches": "make_array(touches[2], touches[1])"}, {"touches": "make_array(touches[2])"},
])  # fmt: skip
def test_a_row_that_never_was_right_is_a_fault(waiting: Bench, change: Record) -> None:
    Hand(waiting).table("joined").update(change, predicate="event_id = 'o'")
    assert kinds(waiting) == {"wrong_pick": ["o"]}


def test_a_forgotten_touch_takes_each_row_that_holds_it(waiting: Bench) -> None:
    waiting.clicks(order("later", 120, "u"))
    pass_by(waiting, 200, "beat2")
    assert touched(waiting)["later"] == (2, [(1, "t2", 20), (2, "t3", 30)])
    request: Any = {"request": "R1", "apply": True, "wait": 0}
    said = forget(waiting.spark, waiting.pipeline, "main", print, where="primary.id=t1", **request)
    assert said["events"] == {"primary": 1, "foreign": 1}
    assert set(touched(waiting)) == {"other", "later"}
    waiting.clicks(order("new", 42, "u"))
    pass_by(waiting, 220, "beat3")
    assert touched(waiting)["new"] == (2, [(1, "t2", 20), (2, "t3", 30)])
    assert not found(verify(waiting))
    said = forget(waiting.spark, waiting.pipeline, "main", print, where="joined.touches.channel=c2", **request)
    assert said["events"] == {"primary": 0, "foreign": 2}
    assert set(touched(waiting)) == {"other"}
    assert not found(verify(waiting))


def test_a_chain_reads_touches_and_forgets_them(waiting: Bench, make: Callable[..., Bench]) -> None:
    """A pipeline that reads such rows keeps none of the touches that it has had forgotten, in whichever column."""
    source = {"kind": "pipeline", "name": "bench"}
    sales = make(
        pipeline="sales", lake=waiting.pipeline.lake,
        primary={"source": source, "event_id": "event_id", "event_time": "event_time"},
        foreign={"event_id": "id", "event_time": "at", "primary_id": "of", "primary_time": {"lookback": "1d"}},
        output={"columns": {"first": {"from": "primary.touches[0].channel", "type": "STRING"}}, "records": "primary"},
    )  # fmt: skip
    sales.clicks(*({"id": f"sale {of}", "at": at(90), "of": of} for of in ("o", "other")))
    sales.join()
    assert sales.rows("joined", "event_id", "first") == [("sale o", "c1"), ("sale other", "none")]
    forget(
        sales.spark, sales.pipeline, "main", print, where="primary.touches.event_id=t1", request="R", apply=True, wait=0
    )
    assert sales.rows("joined", "event_id", "first") == [("sale other", "none")]
    kept = [row for name in ("primary", "foreign", "joined") for row in sales.rows(name)]
    assert "t1" not in repr(kept)
    assert "v1" in repr(kept)


def test_one_that_was_given_up_is_sent_again(waiting: Bench) -> None:
    waiting.queries(touch("n1", 20, "nobody"), touch("n2", 31, "nobody"))
    waiting.clock.now += 60
    waiting.join()
    assert waiting.engine.redrive() == 1
    pass_by(waiting, 90, "beat2")
    assert touched(waiting)["none"] == (2, [(1, "n1", 20), (2, "n2", 31)])
    assert not kinds(waiting)


def test_rows_that_are_made_outside_of_batches(waiting: Bench) -> None:
    """As a fill makes those of events that the registry has forgotten the time of."""
    before = touched(waiting)
    Hand(waiting).table("joined").delete("event_id = 'o'")
    lake, ctx = waiting.engine.lake, context(waiting.engine, FILL, round(waiting.clock.now * MICROS))
    rows = lake.read("foreign").where("event_id = 'o'")
    own, _ = extents(rows, ctx.bucket_seconds)
    assert lake.insert_new("joined", lake.output_of(ctx, rows.toArrow()), own, by_id=False) == 1
    assert touched(waiting) == before


def test_a_lake_that_had_the_last_touch_alone(make: Callable[..., Bench]) -> None:
    """Rows from before have no touches until their date is rebuilt; and none of what a rebuild says is last alone."""
    bench = make(**fields("last", output=OUTPUT))
    bench.queries(T1, T2)
    bench.clicks(order("o", 40, "u"))
    bench.join()
    pass_by(bench, 60)
    assert output(bench) == {"o": "t2"}
    for pick, expected in (("all", [(1, "t1", 10), (2, "t2", 20)]), ("last", None)):
        whole = yaml.safe_load(bench.file.read_text())
        whole["foreign"]["match"]["pick"] = pick
        bench.file.write_text(yaml.safe_dump(whole))
        bench.reload()
        assert kinds(bench) == ({"wrong_pick": ["o"]} if pick == "all" else {})
        rebuild(bench.engine, DAY, round(bench.clock.now * MICROS))
        (row,) = bench.engine.lake.delta.read("joined").to_pylist()
        assert (row["touches"] and list(map(_touch, row["touches"]))) == expected
        assert not kinds(bench)


def test_a_date_closes(waiting: Bench) -> None:
    """Its quality is looked at, and its rows have a fingerprint, with touches among their columns."""
    done = close(waiting.engine, Day(DAY.low.date()), Order("close", "r", forced="all is there"), print)
    assert (done["state"], done["joined"]) == ("closed", 2)
    assert waiting.rows("quality", "suite")
