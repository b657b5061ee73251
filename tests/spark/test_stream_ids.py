"""Events known by their id alone, whatever its time: random ids, each once for as long as its claim is kept.

Each sending stamps an event again, so that the same id comes with other times, in one batch and in several.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pytest
from deltalake import DeltaTable, write_deltalake

from clickjoin.engines.arrow import dealing
from clickjoin.erasure.forget import Erasure
from clickjoin.erasure.wanted import Wanted
from clickjoin.jobs.upkeep import rebuild
from clickjoin.kernel import id_filter
from clickjoin.lake.vacuum import remove_filters
from clickjoin.model import failpoint
from clickjoin.registry.reshard import reshard
from clickjoin.spark.session import another, release
from tests.sampled import in_full, some
from tests.spark.bench import NOON, Bench
from tests.spark.hand import found, stopped, verify
from tests.spark.test_stream import MATRIX, event

Make = Callable[..., Bench]
STREAM = {"source": {"kind": "files", "path": "foreign/*"}, "event_id": "messageId", "event_time": "receivedAt"}
POINTS = failpoint.POINTS if MATRIX else ("claimed",)
DAY = 86400
BEGUN = datetime.fromtimestamp(NOON, UTC).replace(hour=0)


def new(make: Make, *first: dict[str, Any], **fields: Any) -> Bench:
    """A pipeline of one stream whose ids have no time, and whose log holds some events already."""
    registry = {"identity": "id", "shards": 3, **fields.pop("registry", {})}
    return make(stream=STREAM, registry=registry, first=first, **fields)


def published(bench: Bench) -> Counter[str]:
    rows = DeltaTable(str(bench.disk / "deduplicated")).to_pyarrow_table(columns=["event_id", "record"])
    assert all(json.loads(row["record"])["messageId"] == row["event_id"] for row in rows.to_pylist())
    return Counter(rows["event_id"].to_pylist())


def times_of(bench: Bench, *numbers: int) -> dict[int, int]:
    """When events of the output were, in seconds after noon; of an id that is there twice its last row."""
    ids = {event(number)["messageId"]: number for number in numbers}
    rows = bench.rows("joined", "event_id", "event_time")
    return {ids[name]: int(time.timestamp() - NOON) for name, time in sorted(rows) if name in ids}


def assert_exactly_once(bench: Bench) -> None:
    lines = [line for path in (bench.folder / "foreign").iterdir() for line in path.read_text().splitlines()]
    assert published(bench) == Counter({json.loads(line)["messageId"] for line in lines})


def later(bench: Bench, seconds: float) -> None:
    """A new process, some time later."""
    bench.clock.now += seconds
    bench.engine = bench.replica("main")


@pytest.mark.parametrize("local", some(["0B", "64MB"], 2))
def test_repeats_at_other_times(make: Make, local: str) -> None:
    again = event(3, -3600), event(3, 40), event(4, 3)  # in another bucket, too
    bench = new(make, *(event(number) for number in range(30)), *again, batch={"driver_bytes": local})
    assert bench.join() == {"events_in": 33, "joined": 30, "repeats": 3}
    assert times_of(bench, 3, 4) == {3: -3600, 4: 0}  # the first by its own time counts
    later(bench, 2 * 3600)
    bench.clicks(*(event(number, 7200) for number in range(20, 50)))
    assert bench.join() == {"events_in": 30, "joined": 20, "repeats": 10}
    assert_exactly_once(bench)
    assert bench.accounts()["agree"]
    bench.clock.now += 60
    assert found(verify(bench)) == {}
    hour = datetime.fromtimestamp(NOON + 2 * 3600, UTC)
    assert found(verify(bench, since=hour, until=hour + timedelta(hours=1))) == {}
    times = {row[0] for row in bench.rows("joined", "event_time")}
    assert times == {datetime.fromtimestamp(NOON + after, UTC) for after in (-3600, 0, 7200)}


@in_full
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_and_a_repeat_by_another(make: Make, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """A batch is cut short, and another replica, an hour later, takes up the same log; then the first goes on."""
    bench = new(make, *(event(number) for number in range(20)))
    stopped(monkeypatch, point, bench.join)
    bench.clock.now += 3600
    bench.clicks(*(event(number, 3600) for number in range(10, 30)))
    bench.replica("west").drain(lambda _: None)
    later(bench, 3600)
    bench.engine.drain(lambda _: None)
    assert_exactly_once(bench)
    bench.clock.now += 60
    assert found(verify(bench)) == {}


@pytest.mark.parametrize(("point", "shards"), [("looked-up", 3), ("landed", 7)])
def test_the_same_id_between_look_up_and_claim(
    make: Make, monkeypatch: pytest.MonkeyPatch, point: str, shards: int
) -> None:
    """Another claims it in another bucket meanwhile, and the commit of claims finds out.

    So it does where the lake is resharded (to 7) after the batch has begun, and the other, which sees copies alone,
    claims in another shard.
    """
    monkeypatch.setattr(dealing, "_ROWS_A_PART", 2)  # shards apart
    bench = new(make, *(event(number) for number in range(6)))

    def reach(name: str) -> None:
        if name == point:
            patch.undo()
            for log in (bench.folder / "foreign").iterdir():
                log.unlink()
            now = datetime.fromtimestamp(bench.clock.now, UTC).replace(minute=0)
            if shards != 3:
                reshard(bench.engine.lake.delta, bench.pipeline, shards, now + timedelta(hours=1), now)
            bench.clock.now += 7200
            bench.clicks(*(event(number, 7200) for number in range(6)))
            bench.replica("west").drain(lambda _: None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoint, "reach", reach)
        bench.join()
    assert sum(published(bench).values()) == len(published(bench)) == 6
    assert set(times_of(bench, *range(6)).values()) == {7200}


def test_the_copies_of_an_id_in_one_batch_on_both_sides_of_an_entry(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their times they lie in different shards; one task sees them all."""
    monkeypatch.setattr(dealing, "_ROWS_A_PART", 2)
    bench = new(make, event(100))
    bench.join()
    now = datetime.fromtimestamp(bench.clock.now, UTC)
    reshard(bench.engine.lake.delta, bench.pipeline, 7, now.replace(minute=0) + timedelta(hours=3), now)
    later(bench, 4 * 3600)
    bench.clicks(*(event(number, hour * 3600) for number in range(12) for hour in (2, 4)))
    assert bench.join() == {"events_in": 24, "joined": 12, "repeats": 12}
    assert_exactly_once(bench)


@pytest.mark.skipif(not MATRIX, reason="the simulator runs it all the time; make matrix does")
def test_two_replicas_race(make: Make) -> None:
    bench = new(make, *(event(number) for number in range(40)))
    session = another(bench.spark)
    try:
        engines = [bench.replica("main"), bench.replica("west", session)]
        for start in (40, 60):
            threads = [threading.Thread(target=engine.drain, args=(lambda _: None,)) for engine in engines]
            for thread in threads:
                thread.start()
            bench.clock.now += 1800
            bench.clicks(*(event(number, start * 30) for number in range(start - 30, start + 20)))
            for thread in threads:
                thread.join()
    finally:
        release(session)
    for name in ("main", "west"):
        bench.replica(name).drain(lambda _: None)
    assert_exactly_once(bench)
    bench.clock.now += 60
    assert found(verify(bench)) == {}


def test_the_registry_is_lost_and_built_again_from_the_output(make: Make) -> None:
    bench = new(make, *(event(number) for number in range(20)))
    bench.join()
    later(bench, 2 * 3600)
    bench.clicks(*(event(number, 7200) for number in range(10, 40)))
    bench.join()
    before = bench.rows("registry", "event_id", "event_time", "token", "outcome")
    rebuild(bench.spark, bench.pipeline, "main", print, what="registry", replace=True)
    later(bench, 3600)
    assert bench.rows("registry", "event_id", "event_time", "token", "outcome") == before
    bench.clicks(*(event(number, 10_800) for number in range(50)))
    assert bench.join() == {"events_in": 50, "joined": 10, "repeats": 40}
    assert_exactly_once(bench)


@in_full
def test_ids_are_found_in_the_shards_from_before_a_resharding(make: Make) -> None:
    bench = new(make, *(event(number) for number in range(20)))
    bench.join()
    now = datetime.fromtimestamp(bench.clock.now, UTC)
    reshard(bench.engine.lake.delta, bench.pipeline, 7, now.replace(minute=0) + timedelta(hours=3), now)
    later(bench, 4 * 3600)
    bench.clicks(*(event(number, 4 * 3600) for number in range(10, 30)))
    assert bench.join() == {"events_in": 20, "joined": 10, "repeats": 10}
    later(bench, 60)
    bench.clicks(*(event(number, 4 * 3600) for number in range(5, 35)))
    assert bench.join() == {"events_in": 30, "joined": 5, "repeats": 25}
    assert_exactly_once(bench)
    bench.clock.now += 60
    assert found(verify(bench)) == {}


def test_a_filter_spares_looks_and_is_never_trusted(make: Make) -> None:
    """Fresh ids that a filter names are looked up, published and counted; a fresh id has no old file read."""
    bench = new(make, *(event(number) for number in range(4_000)), registry={"shards": 1})
    bench.join()
    later(bench, 2 * 3600)
    bench.clicks(*(event(number) for number in range(3_990, 4_010)))
    assert bench.join() == {"events_in": 20, "joined": 10, "repeats": 10}
    (made,) = (bench.disk / "registry/_ids").iterdir()
    root, fresh = str(bench.disk / "registry"), [event(number)["messageId"] for number in range(5_000, 5_020)]
    held = [event(number)["messageId"] for number in range(4_000)]
    assert id_filter.ids_among(root, [made.name.removesuffix(".ids")], pa.array(fresh)).files_read == 0
    pafs.__dict__.pop("_clickjoin_id_filters", None)
    id_filter.store(root, made.name.removesuffix(".ids"), id_filter.hashes_of(pa.array([*held, *fresh])))
    bench.clicks(*(event(number) for number in range(4_990, 5_020)))
    later(bench, 60)
    assert bench.join() == {"events_in": 30, "joined": 30}
    assert bench.rows("metrics", "batch", "false_positives")[-1] == (3, 20)
    assert_exactly_once(bench)


@in_full
def test_filters_go_with_their_files(make: Make) -> None:
    """Compaction makes other files: they get filters of their own when they are first looked into."""
    bench = new(make, *(event(number) for number in range(2_000)), registry={"shards": 1})
    for batch in range(1, 3):
        bench.join()
        later(bench, 60)
        bench.clicks(*(event(number) for number in range(2_000 * batch - 5, 2_000 * batch + 2_000)))
    bench.join()
    folder = bench.disk / "registry/_ids"
    assert len(list(folder.iterdir())) == 2
    lake = bench.engine.lake
    lake.rewrite("registry", order="event_id")
    (file,) = lake.delta.files("registry")["path"].to_pylist()
    later(bench, 60)
    bench.clicks(event(7), event(9_000))
    assert bench.join() == {"events_in": 2, "joined": 1, "repeats": 1}
    assert (bench.disk / "registry" / id_filter.place_of(file)).exists()
    for path in bench.disk.joinpath("registry").rglob("*.parquet"):
        if "_delta_log" not in path.parts and path.name not in file:
            path.unlink()
    remove_filters(str(bench.disk / "registry"))
    assert [path.name for path in folder.iterdir()] == [Path(id_filter.place_of(file)).name]


def test_an_id_that_is_there_twice_at_other_times_is_found_and_repaired(make: Make) -> None:
    """As where somebody wrote to the tables by hand: its rows are hours apart, and both count."""
    bench = new(make, *(event(number) for number in range(5)))
    bench.join()
    later(bench, 2 * 3600)
    bench.clicks(event(9, 7200))
    bench.join()
    doubled, other = event(3)["messageId"], event(9)["messageId"]
    for name in ("registry", "deduplicated"):
        place = str(bench.disk / name)
        rows = DeltaTable(place).to_pyarrow_table()
        row = rows.filter(pc.equal(rows["event_id"], other))
        column = row.schema.get_field_index("event_id")
        write_deltalake(place, row.set_column(column, row.schema.field(column), pa.array([doubled])), mode="append")
    later(bench, 60)
    report = verify(bench)
    assert {kind: found(report).get(kind) for kind in ("doubled", "doubled_claim")} == {
        "doubled": 1,
        "doubled_claim": 1,
    }
    assert not report.ok
    repaired = verify(bench, repair=True, remove_doubles=True)
    assert {count.kind: (count.count, count.repaired) for count in repaired.counts if count.fault and count.count} == {
        "doubled": (1, 1),
        "doubled_claim": (1, 0),  # which of them is right is for a person to say
    }
    assert found(verify(bench)) == {"doubled_claim": 1}
    assert_exactly_once(bench)
    assert [row[0] for row in bench.rows("removed_duplicates", "event_id")] == [doubled]


@in_full
def test_forgotten_ids_have_one_claim_each(make: Make) -> None:
    """Whatever times they landed at: another claim of an id would be a fault for ever."""
    bench = new(make, *(event(number) for number in range(6)))
    bench.join()
    later(bench, 2 * 3600)
    bench.clicks(*(event(number, 7200) for number in range(6)))
    bench.join()
    ids = [event(number)["messageId"] for number in range(3)]
    Erasure(bench.replica("main"), Wanted(ids=frozenset(ids)), "R1", print, 0.0).apply()
    claims = Counter(row[0] for row in bench.rows("registry", "event_id"))
    assert claims == Counter(event(number)["messageId"] for number in range(6))
    bench.clock.now += 60
    assert found(verify(bench)) == {}
