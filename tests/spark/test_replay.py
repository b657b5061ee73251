"""Batches that run more than once, beside others: what is claimed is fixed by one commit, and that is published."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from clickjoin.model import failpoint
from clickjoin.model.errors import BatchError
from clickjoin.model.ids import moment
from clickjoin.model.txn import Txn
from clickjoin.registry.boundary import advance
from clickjoin.schemas import REGISTRY
from tests.claims import claim_rows
from tests.sampled import crossed, in_full, some
from tests.spark.bench import Bench, click, crash_at, event_id, query
from tests.spark.count import agrees

Q, LATE = query("q"), query("late", 1)
Hook = Callable[[str, Callable[[], None]], None]


@pytest.fixture
def when(monkeypatch: pytest.MonkeyPatch) -> Hook:
    """Does something when a batch reaches a point, once."""

    def hook(point: str, act: Callable[[], None]) -> None:
        left = [act]
        monkeypatch.setattr(failpoint, "reach", lambda name: left.pop()() if name == point and left else None)

    return hook


def crash() -> None:
    raise KeyboardInterrupt


def claim(bench: Bench, token: str, *hosts: tuple[str, float], txn: Txn | None = None) -> None:
    """Claim ids by hand: (host, seconds after noon)."""
    names = [event_id(*host) for host in hosts]
    rows = bench.spark.createDataFrame([(name, token) for name in names], "event_id STRING, token STRING")
    wanted = bench.engine.lake.read("foreign").join(rows, "event_id").dropDuplicates(["event_id"])
    rows = wanted.selectExpr(*REGISTRY.names[:-1], "'joined' AS outcome")
    assert claim_rows(bench.engine.lake, rows.toArrow(), txn or Txn(token, 1)) == len(hosts)


@pytest.mark.parametrize("local", some(["0B", "4MB"], 2))
def test_copies_of_a_batch_change_nothing(make: Any, local: str) -> None:
    """Run before and after it is settled: all tables are as they were."""
    bench = make(adapter="clickjoin.examples.adapters:TopPositions", batch={"driver_bytes": local})
    bench.queries(Q, "{broken")
    a, b, c = (
        click(host, at, of, position=n) for host, at, of, n in (("a", 2, Q, 1), ("b", 3, Q, 3), ("c", 4, LATE, 2))
    )
    bench.clicks(a, a, b, c, "broken")
    plan = bench.engine.join.next_join()
    bench.run_copy(plan)
    once = bench.all_tables()
    assert bench.places() == {"joined": ["a"], "filtered": ["b"], "pending": ["c"]}
    bench.queries(LATE)  # a copy that could join c may not: the claims are fixed
    bench.run_copy(plan)
    assert bench.all_tables() == once
    settled = bench.join()
    assert settled.pop("quarantined") == 2
    assert settled == {"primary_in": 1, "events_in": 4, "joined": 1, "filtered": 1, "pending": 1, "repeats": 1}
    settled = bench.all_tables()
    assert {name for name in once if once[name] != settled[name]} == {"journal", "metrics"}
    bench.run_copy(plan)
    assert bench.all_tables() == settled
    assert bench.join() == {"primary_in": 1}


@pytest.mark.parametrize(("after", "local"), crossed([False, True], ["0B", "20MB"]))
def test_bad_records_are_counted_by_whoever_settles(make: Any, after: bool, local: str) -> None:
    """Cut short just before or just after they were put aside: the batch's metrics hold what lies in quarantine."""
    bench = make(limits={"max_record": "6MB"}, batch={"driver_bytes": local})
    bench.queries(Q, "{broken")
    bench.clicks(click("a", 2, Q), "x" * 9_000_000, "[]")  # the long one takes three rows, and counts once
    with crash_at(bench.engine.lake, "quarantine", after=after):
        bench.join()
    assert bench.join() == {"primary_in": 1, "events_in": 1, "joined": 1, "quarantined": 3}
    assert len(bench.rows("quarantine")) == 5
    assert bench.engine.lake.delta.read("metrics", columns=["quarantined"])["quarantined"].to_pylist() == [3]


def test_claims_of_a_copy_with_other_candidates(make: Any) -> None:
    """A copy claimed a alone: b is not published, it waits, and joins at its retry."""
    bench = make()
    bench.queries(Q)
    bench.clicks(click("a", 2, Q), click("b", 3, Q), click("c", 4, LATE))
    plan = bench.engine.join.next_join()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoint, "reach", lambda name: crash() if name == "landed" else None)
        with pytest.raises(KeyboardInterrupt):
            bench.run_copy(plan)
    claim(bench, plan.token, ("a", 2), txn=plan.txn)
    assert bench.join() == {"primary_in": 1, "events_in": 3, "joined": 1, "pending": 2}
    assert bench.places() == {"joined": ["a"], "pending": ["b", "c"]}
    assert bench.retry(after=10) == {"events_in": 2, "joined": 1, "pending": 1}
    assert bench.places() == {"joined": ["a", "b"], "pending": ["c"]}
    assert agrees(bench)


def test_a_copy_overtakes_between_look_up_and_claim(make: Any, when: Hook) -> None:
    """The late copy claims nothing, and publishes what the other has claimed; the outcome is the same."""
    bench = make()
    bench.queries(Q)
    bench.clicks(click("a", 2, Q), click("b", 3, LATE))
    plan = bench.engine.join.next_join()
    when("looked-up", lambda: bench.run_copy(plan) and None)
    assert bench.join() == {"primary_in": 1, "events_in": 2, "joined": 1, "pending": 1}
    assert (bench.places(), len(bench.rows("pending"))) == ({"joined": ["a"], "pending": ["b"]}, 1)


def test_wasted_joins(make: Any, when: Hook) -> None:
    """Another replica claims one id after it was looked up: it is counted, and not published here."""
    bench = make()
    bench.queries(Q)
    bench.clicks(click("a", 2, Q), click("b", 3, Q), click("c", 4, Q))
    when("looked-up", lambda: claim(bench, "bench/east/join/1", ("b", 3)))
    assert bench.join() == {"primary_in": 1, "events_in": 3, "joined": 2, "repeats": 1, "wasted": 1}
    assert bench.places() == {"joined": ["a", "c"]}
    assert bench.claims()["b"] == ("east/join/1", "joined")


def test_two_replicas(make: Any) -> None:
    """Both read the same logs; each id is joined once, and the other replica's record of it is a repeat."""
    bench = make()
    east = bench.replica("east")
    bench.queries(Q)
    bench.clicks(click("a", 2, Q), click("b", 3, LATE))
    assert bench.join() == {"primary_in": 1, "events_in": 2, "joined": 1, "pending": 1}
    assert east.join_once().metrics["repeats"] == 1
    bench.queries(LATE)
    bench.join()
    east.join_once()
    bench.clock.now += 10
    assert east.retry_once().metrics["joined"] == 1
    assert bench.retry() == {"events_in": 1, "repeats": 1}
    assert bench.claims() == {"a": ("main/join/1", "joined"), "b": ("east/retry/1", "joined")}
    assert bench.places() == {"joined": ["a", "b"]}
    resolved = [row for row in bench.rows("pending", "state", "replica", "outcome") if row[0] == "resolved"]
    assert resolved == [("resolved", "east", "joined"), ("resolved", "main", "claimed_elsewhere")]
    sums = bench.accounts()
    assert (sums["accepted"], sums["joined"], sums["repeats"], sums["agree"]) == (2, 2, 2, True)


@pytest.mark.parametrize(("looser", "local"), crossed([True, False], ["0B", "4MB"]))
def test_limits_that_change_while_a_batch_has_half_landed(make: Any, local: str, looser: bool) -> None:
    """Each record is where the first judgement has put it, or in `quarantine`: in one table, and in none twice."""
    strict, loose = (
        {"limits": {"earliest": day}, "batch": {"driver_bytes": local}} for day in ("2026-01-01", "2020-01-01")
    )
    bench = make(**(strict if looser else loose))
    bench.queries(Q)
    bench.clicks(click("a", 2, Q), click("old", -86_400 * 400, Q), "{broken")
    with crash_at(bench.engine.lake, "quarantine", after=False):
        bench.join()
    bench.file.write_text(bench.file.read_text().replace(*("2026-01-01", "2020-01-01")[:: 1 if looser else -1]))
    bench.reload()
    bench.join()
    aside = bench.rows("quarantine", "reason")
    assert aside == [("broken-json",), ("settings-changed",)] if looser else [("broken-json",)]
    assert bench.hosts("foreign") == (["a"] if looser else ["a", "old"])
    bad = bench.engine.lake.delta.read("quarantine")
    held = dict(zip(bad["reason"].to_pylist(), bad["raw"].to_pylist(), strict=True))
    assert held["broken-json"].strip() == b"{broken"
    if looser:
        assert b"old:" in held["settings-changed"]


@pytest.mark.parametrize("local", some(["64MB", "0B"], 2))
@in_full
def test_a_long_record_that_had_landed_is_in_no_part_in_quarantine(make: Any, local: str) -> None:
    bench = make(limits={"max_record": "16MB"}, batch={"driver_bytes": local})
    bench.queries(Q)
    bench.clicks(click("a", 2, Q, text="x" * 9_000_000), "{broken")
    with crash_at(bench.engine.lake, "quarantine", after=False):
        bench.join()
    bench.file.write_text(bench.file.read_text().replace("16MB", "1MB"))
    bench.reload()
    bench.join()
    assert bench.rows("quarantine", "reason") == [("broken-json",)]
    assert bench.places() == {"joined": ["a"]}


def test_a_batch_without_claims_is_fixed_too(make: Any) -> None:
    """A copy that looked up later, and found the query, can claim nothing any more."""
    bench = make()
    bench.clicks(click("a", 2, Q))
    plan = bench.engine.join.next_join()
    ctx = bench.context(plan)
    assert not ctx.is_fixed
    assert bench.join() == {"events_in": 1, "pending": 1}
    assert ctx.is_fixed
    claims = bench.engine.lake.read("foreign").selectExpr(
        *REGISTRY.names[:4], f"'{plan.token}' token", "'joined' outcome"
    )
    assert claim_rows(bench.engine.lake, claims.toArrow(), plan.txn) is None
    assert bench.claims() == {}


def test_a_claim_without_its_primary_stops_the_batch(make: Any, when: Hook) -> None:
    """Rows of `primary` were removed by hand between claim and publish: nothing wrong is published."""
    bench = make()
    bench.queries(Q)
    bench.clicks(click("a", 2, Q))
    when("claimed", crash)
    with pytest.raises(KeyboardInterrupt):
        bench.join()
    bench.engine.lake.delta.open("primary").delete()
    with pytest.raises(BatchError, match=r"batch bench/main/join/1: 1 of its claims have no primary event any more"):
        bench.join()
    assert bench.places() == {}
    assert bench.replica("main").join.unsettled().number == 1


def test_an_adapter_that_drops_what_another_has_claimed(make: Any, when: Hook) -> None:
    """Its file was changed between claim and publish: the message says so, and the old adapter publishes."""
    bench = make()
    bench.queries(Q)
    bench.clicks(click("a", 2, Q, position=1), click("b", 2, Q, position=9))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoint, "reach", lambda name: crash() if name == "claimed" else None)
        with pytest.raises(KeyboardInterrupt):
            bench.join()
    before = bench.pipeline
    bench.pipeline = before.model_copy(update={"adapter": "clickjoin.examples.adapters:TopPositions"})
    with pytest.raises(
        BatchError, match=r"has claimed 1 events as joined that .*TopPositions drops.*Put that one back"
    ):
        bench.run_copy(bench.engine.join.unsettled())
    assert bench.places() == {}
    bench.pipeline = before
    bench.engine = bench.replica("main")
    bench.join()
    assert bench.places() == {"joined": ["a", "b"]}


def test_expired_by_the_boundary(make: Any) -> None:
    """Older than the boundary of its shard: neither joined nor lost, unless this very batch has claimed it before."""
    bench = make(registry={"shards": 1})
    bench.queries(Q)
    bench.clicks(click("a", -3600, Q), click("b", 3, LATE), click("c", 5, Q))
    noon = moment(int(Q["event_id"].rsplit(":", 1)[1]))
    advance(bench.engine.lake.delta, 1, noon, noon)
    assert bench.join() == {"primary_in": 1, "events_in": 3, "joined": 1, "expired": 1, "pending": 1}
    advance(bench.engine.lake.delta, 1, noon + timedelta(seconds=60), noon)
    bench.clicks(click("c", 5, Q), click("d", 6, Q))
    assert bench.join() == {"events_in": 2, "repeats": 1, "expired": 1}
    assert bench.retry(after=10) == {"events_in": 1, "expired": 1}
    assert bench.places() == {"joined": ["c"], "expired": ["a", "b", "d"]}
    assert bench.rows("expired", "sequence", "event_id")[-1][0] == "retry"
    assert bench.claims() == {"c": ("main/join/1", "joined")}
    assert bench.engine.lake.delta.rows("expired") == 3
    assert agrees(bench)


@in_full
def test_a_late_copy_whose_queries_were_collected(make: Any) -> None:
    """Before the output is there, that is an error with a remedy; afterwards nothing is missing."""
    bench = make()
    bench.queries(Q)
    bench.clicks(click("a", 2, Q), click("b", 3, LATE))
    plan = bench.engine.join.next_join()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoint, "reach", lambda name: crash() if name == "claimed" else None)
        with pytest.raises(KeyboardInterrupt):
            bench.run_copy(plan)
    primary = bench.engine.lake.delta.open("primary")
    held = primary.version()
    primary.delete()
    with pytest.raises(BatchError, match="1 of its claims have no primary event"):
        bench.run_copy(plan)
    bench.engine.lake.delta.open("primary").restore(held)
    bench.join()
    bench.engine.lake.delta.open("primary").delete()
    before = bench.all_tables()
    bench.run_copy(plan)
    assert bench.all_tables() == before
    assert bench.places() == {"joined": ["a"], "pending": ["b"]}
