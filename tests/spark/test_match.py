"""Joins by a key and time, compared with what a few lines of plain Python say of the same records."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from clickjoin.config import load
from clickjoin.dates.rebuild import rebuild
from clickjoin.gc.compaction import maintain
from clickjoin.lake_setup import initialise
from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.model.ids import MICROS, moment
from clickjoin.model.span import Span
from clickjoin.registry.boundary import lift_floor
from tests.sampled import in_full
from tests.spark.bench import NOON, Bench, crash_at
from tests.spark.hand import Hand, found, verify

WITHIN, SKEW = 100, 3  # seconds
MATCH = {"on": {"foreign": "user.id", "primary": "who"}, "within": f"{WITHIN}s", "skew": f"{SKEW}s"}
PREFER = {"channel": {"not": ["direct", 1]}}
DAY = Span(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))
Record = dict[str, Any]


def at(seconds: float) -> str:
    return moment(round((NOON + seconds) * MICROS)).isoformat()


def touch(name: str, seconds: float, who: str | None, **more: Any) -> Record:
    return {"id": name, "at": at(seconds), "who": who, **more}


def order(name: str, seconds: float, who: str | None) -> Record:
    return {"id": name, "at": at(seconds), "user": {"id": who}}


def fields(pick: str = "last", *, prefer: Record | None = None, **more: Any) -> Record:
    stream = {"event_id": "id", "event_time": "at"}
    match = MATCH | {"pick": pick} | ({"prefer": prefer} if prefer else {})
    foreign = stream | {"primary_id": None, "primary_time": None, "match": match}
    return {"primary": stream, "foreign": foreign, "close": {"max_out_of_orderness": "0s"}, **more}


def pass_by(bench: Bench, seconds: float, name: str = "beat") -> None:
    """Have the stream of primary events come so far, and decide what can be."""
    bench.queries(touch(name, seconds, None))
    bench.clock.now = max(bench.clock.now, NOON + seconds)
    for _ in range(2):
        bench.clock.now += 60
        bench.engine.join_once()
    while bench.engine.retry_once():
        pass


def output(bench: Bench) -> dict[str, str]:
    """The primary event of each joined one. No id is there twice."""
    rows = bench.rows("joined", "event_id", "primary_id")
    assert len({name for name, _ in rows}) == len(rows)
    return dict(rows)


def truth(touches: list[Record], orders: list[Record], pick: str, *, prefer: bool = False) -> dict[str, str]:
    """The rules, read aloud: copies of an id count once, at the least time; order is (time, id).

    `prefer`: those that meet PREFER, one copy of that time at least, before all others.
    """

    def time(record: Record) -> float:
        return datetime.fromisoformat(record["at"]).timestamp() - NOON

    first: dict[tuple[str, str], float] = {}
    for one in touches:
        if (one["who"] or "").strip():
            key = (one["who"], one["id"])
            first[key] = min(time(one), first.get(key, time(one)))
    liked = {
        (one["who"], one["id"])
        for one in touches
        if prefer and one.get("channel") not in ("direct", 1) and time(one) == first.get((one["who"], one["id"]))
    }
    answers = {}
    for one in orders:
        who = one["user"]["id"]
        fits = [
            (when, name.encode(), name, (who, name) in liked)
            for (key, name), when in first.items()
            if key == who and name != one["id"] and -SKEW <= round(time(one) - when, 6) <= WITHIN
        ]
        fits = [each for each in fits if each[3]] or fits
        if fits:
            answers[one["id"]] = (max if pick == "last" else min)(fits)[2]
    return answers


def world(seed: int) -> tuple[list[Record], list[Record]]:
    """Touches and orders of few users at few times, so that every corner is met."""
    dice = random.Random(seed)
    users = ["a", "b", "ü", "", None, " "]
    times = [0.0, 1.5, 1.500001, 50, 97, 98.5, 99.999999, 100, 100.000001, 101.5, 103, 150]
    channels = ["direct", "direct", 1, 1.0, 2, "ad", None, "", ["direct"]]
    touches = [
        touch(f"t{dice.choice('abz')}{n}", dice.choice(times), dice.choice(users), channel=dice.choice(channels))
        for n in range(60)
    ]
    # Sent again, or with another time, or channel.
    touches += [dict(dice.choice(touches), at=at(dice.choice(times))) for _ in range(8)]
    touches += [dict(dice.choice(touches), channel=dice.choice(channels)) for _ in range(8)]
    orders = [order(f"o{n}", dice.choice(times) + dice.choice([0, 50, 100]), dice.choice(users)) for n in range(60)]
    orders += [order(one["id"], 100, one["who"]) for one in touches[:4]]  # no event matches itself
    return touches, orders


def decided(bench: Bench, seed: int) -> tuple[list[Record], list[Record]]:
    """A world's touches and orders, in whatever order they arrive, once the stream of touches has passed all orders."""
    touches, orders = world(seed)
    random.Random(seed).shuffle(touches)
    for part in range(3):
        bench.queries(*touches[part::3])
        bench.clicks(*orders[part::3])
        bench.clock.now += 300
        bench.join()
    assert not bench.rows("joined", "event_id"), "the stream of primary events has not passed them"
    pass_by(bench, 900)
    return touches, orders


@pytest.mark.parametrize(("seed", "pick", "prefer"), [(1, "last", True), (2, "first", False)])
def test_each_event_has_the_one_that_the_rules_name(
    make: Callable[..., Bench], seed: int, pick: str, *, prefer: bool
) -> None:
    """Whatever the order in which both arrive, and in whichever batches."""
    bench = make(**fields(pick, prefer=PREFER if prefer else None, close={"max_out_of_orderness": "300s"}))
    touches, orders = decided(bench, seed)
    expected = truth(touches, orders, pick, prefer=prefer)
    assert output(bench) == expected
    given_up = {one["id"] for one in orders} - expected.keys()
    assert {name for (name,) in bench.rows("unjoinable", "event_id")} == given_up
    assert bench.accounts()["agree"]
    assert not found(verify(bench))


@in_full
@pytest.mark.parametrize("pick", ["last", "first"])
@pytest.mark.parametrize("seed", range(10, 20))
def test_worlds(make: Callable[..., Bench], seed: int, pick: str) -> None:
    test_each_event_has_the_one_that_the_rules_name(make, seed, pick, prefer=seed % 2 == 0)


T1, T2, LATE = touch("t1", 10, "u"), touch("t2", 20, "u"), touch("t3", 25, "u")


@pytest.fixture
def waiting(make: Callable[..., Bench]) -> Bench:
    """An order that has come before the stream of touches has passed its time."""
    bench = make(**fields())
    bench.queries(T1)
    bench.clicks(order("o", 30, "u"), order("none", 31, "nobody"), order("keyless", 32, None))
    assert bench.join() == {"primary_in": 1, "events_in": 3, "pending": 2, "unjoinable": 1}
    return bench


def test_an_event_waits_until_the_other_stream_has_passed_it(waiting: Bench) -> None:
    """And is decided at once then, long before its retry falls due."""
    waiting.clock.now += 3600
    assert waiting.retry() == {"events_in": 2, "pending": 2}, "looked at by its age, and not decided"
    waiting.queries(T2)
    pass_by(waiting, 33)  # as far as its time and the skew, and no further
    assert not output(waiting)
    pass_by(waiting, 35, "beat2")
    assert output(waiting) == {"o": "t2"}
    assert {name for (name,) in waiting.rows("unjoinable", "event_id")} == {"none", "keyless"}


def test_the_age_decides_where_the_other_stream_stands_still(waiting: Bench) -> None:
    for _ in range(2):
        waiting.retry(after=7200)
    assert output(waiting) == {"o": "t1"}
    assert not found(verify(waiting))


def test_a_decision_that_was_cut_short(waiting: Bench) -> None:
    """One row, whatever comes between the claim and the row; kills at each commit are tried in tests/conformance."""
    waiting.queries(touch("beat", 40, None))
    waiting.join()
    waiting.clock.now += 60
    waiting.join()
    with crash_at(waiting.engine.lake, "registry", after=True):
        waiting.retry()
    waiting.engine = waiting.replica("main")
    waiting.queries(LATE)
    pass_by(waiting, 50, "beat2")
    assert output(waiting)["o"] in ("t1", "t3")
    assert not found(verify(waiting))


def test_two_replicas(waiting: Bench) -> None:
    other = waiting.replica("b")
    assert other.join_once()
    waiting.queries(T2)
    pass_by(waiting, 40)
    assert output(waiting) == {"o": "t2"}
    while other.join_once():
        waiting.clock.now += 60
    while other.retry_once():
        pass
    assert output(waiting) == {"o": "t2"}
    assert not found(verify(waiting))


def test_a_primary_event_that_comes_too_late_is_seen_and_taken_up_by_a_rebuild(waiting: Bench) -> None:
    pass_by(waiting, 40)
    assert output(waiting) == {"o": "t1"}
    waiting.queries(LATE, touch("t4", 31, "nobody"))
    waiting.clock.now += 60
    waiting.join()
    report = verify(waiting)
    late = next(count for count in report.counts if count.kind == "late_touch")
    assert (late.count, late.fault, [one["event_id"] for one in late.samples]) == (2, False, ["none", "o"])
    assert not found(report)
    assert waiting.engine.redrive() == 2, "all that were given up, with or without a key"
    pass_by(waiting, 50, "beat2")
    rebuild(waiting.engine, DAY, round(waiting.clock.now * MICROS))
    assert output(waiting) == {"o": "t3", "none": "t4"}
    assert waiting.rows("joined", "event_id", "primary_time")[1][1] == moment(round((NOON + 25) * MICROS))
    assert not found(verify(waiting))


def test_compaction_sorts_by_key(waiting: Bench) -> None:
    """Look-ups read few of its row groups then; who is picked stays."""
    for n in range(5):
        waiting.queries(touch(f"late {n}", 21 + n / 10, "vwx"[n % 3]), touch(f"of u {n}", 10 + n, "u"))
        waiting.join()
    maintain(waiting.pipeline, waiting.engine.lake, datetime.fromtimestamp(NOON + 2 * 86400, UTC), print)
    (file,) = waiting.engine.lake.delta.files("primary")["path"].to_pylist()
    written = pq.read_table(waiting.disk / "primary" / file, partitioning=None)
    keys = [key or "" for key in written["match_key"].to_pylist()]
    assert keys == sorted(keys)
    assert set(keys) == set("uvwx")
    pass_by(waiting, 40)
    assert output(waiting) == {"o": "of u 4"}


def test_a_row_that_never_was_right_is_a_fault(waiting: Bench) -> None:
    waiting.queries(T2)
    pass_by(waiting, 40)
    Hand(waiting).table("joined").update({"primary_id": "'t1'"})
    assert found(verify(waiting)) == {"wrong_pick": 1}


def test_a_date_whose_candidates_were_collected_is_not_rebuilt(waiting: Bench) -> None:
    pass_by(waiting, 40)
    lift_floor(waiting.engine.lake.delta, moment(round((NOON + 5) * MICROS)), moment(round(NOON * MICROS)))
    with pytest.raises(LakeError, match="were collected"):
        rebuild(waiting.engine, DAY, 1)
    assert output(waiting) == {"o": "t1"}


@pytest.mark.parametrize("change", [{"on": {"foreign": "user.id", "primary": "whom"}}, {"prefer": PREFER}])
def test_another_key_or_preference_is_refused(waiting: Bench, change: Record) -> None:
    whole = yaml.safe_load(waiting.file.read_text())
    whole["foreign"]["match"] |= change
    waiting.file.write_text(yaml.safe_dump(whole))
    with pytest.raises(ConfigError, match="begun with"):
        initialise(load(waiting.file))


def test_the_key_is_of_both_or_of_the_first_that_is_set(make: Callable[..., Bench]) -> None:
    on = {"foreign": {"first": ["login", "device"]}, "primary": ["shop", "who"]}
    bench = make(**fields() | {"foreign": {**fields()["foreign"], "match": MATCH | {"on": on}}})
    bench.queries(touch("t1", 1, "u", shop="s"), touch("t2", 2, "u"), touch("t3", 3, None, shop="s"))
    login = {"o1": ("s:u", "d"), "o2": ("", "s:u"), "o3": (None, None), "o4": ("x", "s:u")}
    bench.clicks(*({**order(name, 9, None), "login": a, "device": b} for name, (a, b) in login.items()))
    bench.join()
    pass_by(bench, 40)
    assert output(bench) == {"o1": "t1", "o2": "t1"}
