"""The next batch's records are written while one is looked up: used as they are, or, where anything changed, again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from clickjoin.forgotten import known
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.ids import MICROS
from tests.spark.bench import NOON, Bench, click, event_id, query

QUERIES = [query(f"q{n}", n) for n in range(12)]
CLICKS = [click(f"c{n}", 100 + n, QUERIES[0], note="secret") for n in range(12)]


@pytest.fixture
def bench(make: Any) -> Bench:
    """Three batches of logs, of which the first has been joined, and the second is written ahead."""
    made: Bench = make(batch={"max_events": 4, "driver_bytes": 0})
    made.queries(*QUERIES)
    made.clicks(*CLICKS)
    made.join()
    landed = made.engine._overlap._job.result().landed  # type: ignore[union-attr]
    assert landed
    assert set(landed.files) == {"primary", "foreign"}
    return made


def unused(bench: Bench) -> int:
    """Files of both streams that no commit names."""
    delta = bench.replica("main").lake.delta
    streams = ("primary", "foreign")
    there = sum(1 for name in streams for _ in (bench.disk / name).rglob("*.parquet"))
    return there - sum(delta.files(name).num_rows for name in streams)


def joined_once(bench: Bench, queries: int = 12) -> bool:
    while bench.engine.join_once():
        pass
    hosts = [f"c{n}" for n in range(12)]
    clicks = all(sorted(bench.hosts(name)) == sorted(hosts) for name in ("joined", "foreign"))
    return clicks and len(bench.hosts("primary")) == len(set(bench.hosts("primary"))) == queries


def test_what_was_written_ahead_is_what_lands(bench: Bench) -> None:
    assert unused(bench) > 0  # of the second batch, which nobody has planned yet
    assert bench.engine.join.journal.planned() == 1
    assert joined_once(bench)
    assert unused(bench) == 0


def test_an_event_that_is_forgotten_meanwhile_is_not_stored(bench: Bench) -> None:
    named = {"foreign": frozenset((event_id(f"c{n}", 100 + n), int((NOON + 100 + n) * MICROS)) for n in range(12))}
    delta = bench.replica("main").lake.delta
    known.add(delta, known.Events(named), "request 1", datetime.fromtimestamp(NOON, UTC), 3600)
    before = len(bench.hosts("foreign"))
    while bench.engine.join_once():
        pass
    kept = [payload for (payload,) in bench.rows("foreign", "payload") if "secret" in payload]
    assert len(kept) == before  # those of the first batch, which forgetting would take away itself
    assert unused(bench) > 0


def test_another_process_plans_the_number_first(bench: Bench) -> None:
    bench.queries(query("late", 50))
    batch = bench.pipeline.batch.model_copy(update={"max_events": 100})
    bench.pipeline = bench.pipeline.model_copy(update={"batch": batch})
    assert bench.replica("main").join.next_join()  # of all that is left
    assert bench.engine.join.journal.planned() == 2
    assert joined_once(bench, 13)
    assert unused(bench) > 0


def test_a_file_that_is_gone_is_written_again(bench: Bench) -> None:
    landed = bench.engine._overlap._job.result().landed  # type: ignore[union-attr]
    assert landed
    (bench.disk / "foreign" / landed.files["foreign"].good[0].path).unlink()
    assert joined_once(bench)


def test_records_of_a_log_that_is_gone_are_counted_as_lost(bench: Bench) -> None:
    """They are not stored from what was written ahead: where the log comes back it is read again."""
    log = bench.folder / "foreign/0.jsonl"
    held = log.read_bytes()
    log.unlink()
    bench.engine.join_once()
    assert bench.rows("quarantine", "reason") == [("source-lost",)]
    assert set(bench.rows("foreign", "batch")) == {(1,)}
    log.write_bytes(held)
    while bench.engine.join_once():
        pass
    assert sorted(bench.hosts("joined")) == sorted(f"c{n}" for n in range(12))


@pytest.mark.parametrize("fails", [True, False])
def test_an_error_ahead_is_that_of_the_batch_itself(bench: Bench, fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes again in its turn if it lasts, and is passed over if it does not."""
    plan: Callable[..., Any] = bench.engine.sources["foreign"].plan
    broken = [OSError("a disk") for _ in range(2 if fails else 1)]

    def read(*args: Any) -> Any:
        if broken:
            raise broken.pop()
        return plan(*args)

    bench.engine._overlap.take()
    monkeypatch.setattr(bench.engine.sources["foreign"], "plan", read)
    bench.engine._overlap.begin(bench.context(bench.engine.join.journal.load().unsettled or _last(bench)))
    if fails:
        with pytest.raises(OSError, match="a disk"):
            bench.engine.join_once()
    assert joined_once(bench)


def _last(bench: Bench) -> Any:
    """The plan of the batch that is done."""
    rows = bench.rows("journal", "state", "plan")
    return next(BatchPlan.from_json(plan) for state, plan in rows if state == "planned")
