"""Tables that do not fit together are refused at every start, with a way back; what a crash leaves is not."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clickjoin.jobs import upkeep
from clickjoin.jobs.all_jobs import JOBS
from clickjoin.lake.log_entries import TableLog
from clickjoin.model import failpoint
from clickjoin.model.errors import LakeError
from clickjoin.rebuild import registry as rebuilding
from clickjoin.registry.boundary import advance
from clickjoin.registry.reshard import reshard
from clickjoin.registry.shards import load_timeline
from tests.sampled import crossed, in_full, some
from tests.spark.bench import NOON, Bench, click, query
from tests.spark.count import agrees
from tests.spark.hand import stopped

Q, NEVER, LATER = query("q"), query("never", 2), query("later", 3)


@pytest.fixture(scope="module")
def built(make: Callable[..., Bench]) -> Bench:
    """Two batches of every outcome, and a retry that gave an event up."""
    made = make(
        adapter="clickjoin.examples.adapters:TopPositions",
        retry={"max_attempts": 2, "max_age": "5s"},
        registry={"retention": "1d"},
    )
    made.queries(Q)
    made.clicks(click("a", 2, Q, position=1), click("b", 3, Q, position=9), click("gone", 5, NEVER, position=1))
    made.join()
    made.retry(after=20)
    more(made, "c")
    assert made.places() == {"joined": ["a", "c"], "filtered": ["b"], "unjoinable": ["gone"], "pending": ["wc"]}
    return made


@pytest.fixture
def bench(built: Bench, tmp_path: Path) -> Iterator[Bench]:
    """That lake, to be changed: it is put back afterwards."""
    with built.kept(tmp_path / "kept"):
        # A lake that is put back reaches the same versions again, with other files in them.
        built.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
        yield built


def more(bench: Bench, host: str) -> None:
    """A batch that joins one click, and lets one wait."""
    bench.clicks(click(host, 8, Q, position=1), click(f"w{host}", 9, LATER, position=1))
    assert bench.join()["joined"] == 1


def folder(bench: Bench, name: str) -> Path:
    return bench.disk / name


def keep(bench: Bench, name: str) -> Callable[[], None]:
    """A copy of a table as it is now; call what is returned to restore it."""
    copy = bench.folder / f"copy-{name}"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder(bench, name), copy)

    def back() -> None:
        shutil.rmtree(folder(bench, name))
        copy.rename(folder(bench, name))

    return back


def newest(bench: Bench, name: str) -> Path:
    return sorted(folder(bench, name).glob("_delta_log/*.json"))[-1]


def drain(bench: Bench, replica: str = "main") -> None:
    bench.clock.now += 1
    bench.replica(replica).drain(lambda _: None)
    bench.engine = bench.replica("main")


def rebuild(bench: Bench, what: str) -> None:
    upkeep.rebuild(bench.spark, bench.pipeline, "", print, what=what, replace=True)
    bench.engine = bench.replica("main")


def test_an_older_registry(bench: Bench) -> None:
    back = keep(bench, "registry")
    more(bench, "d")
    back()
    for replica in ("main", "west"):
        with pytest.raises(
            LakeError, match=r"p?/registry: is older than the journal.*batch 3 of bench/main/join was"
        ) as e:
            bench.replica(replica)
    assert "it holds batches to 2" in str(e.value)
    assert "`clickjoin registry rebuild --replace`" in str(e.value)
    rebuild(bench, "registry")
    drain(bench)
    drain(bench, "west")
    assert bench.places()["joined"] == ["a", "c", "d"]
    assert agrees(bench)


def test_an_older_journal(bench: Bench) -> None:
    back = keep(bench, "journal")
    more(bench, "d")
    back()
    bench.clicks(click("e", 20, Q, position=1))
    with pytest.raises(
        LakeError, match=r"journal: is older than table .* holds batch 3 of .*`clickjoin journal rebuild"
    ):
        bench.replica("main")
    rebuild(bench, "journal")
    drain(bench)
    assert bench.places()["joined"] == ["a", "c", "d", "e"]
    assert agrees(bench)
    drain(bench, "west")
    assert bench.places()["joined"] == ["a", "c", "d", "e"]


@in_full
def test_a_replica_that_an_older_journal_has_never_heard_of(bench: Bench) -> None:
    back = keep(bench, "journal")
    drain(bench, "west")
    back()
    with pytest.raises(LakeError, match=r"journal: is older than table .* of bench/west/join: .* knows batches to 0"):
        bench.replica("main")
    rebuild(bench, "journal")
    drain(bench, "west")
    assert agrees(bench)


@pytest.mark.parametrize("between", some(["foreign", "registry_boundary", "joined"], 3))
def test_tables_copied_one_by_one_while_batches_ran(bench: Bench, between: str) -> None:
    first = ["journal", "registry_boundary"]
    names = [*first, *sorted({path.name for path in bench.disk.iterdir()} - set(first))]
    backs = []
    for name in names:
        backs.append(keep(bench, name))
        if name == between:
            more(bench, "d")
    for back in backs:
        back()
    with pytest.raises(LakeError, match="journal: is older than table"):
        bench.replica("main")


OLDER = ("joined", "foreign", "primary", "pending", "unjoinable", "metrics", "registry_boundary")


@pytest.mark.parametrize("name", some(OLDER, 6))
def test_any_other_older_table(bench: Bench, name: str) -> None:
    back = keep(bench, name)
    advance(bench.engine.lake.delta, 4, datetime.fromtimestamp(NOON - 7200, UTC), datetime.now(UTC))
    bench.clicks(click("x", 5, NEVER, position=1))
    bench.queries(query("q2", 1))
    more(bench, "d")
    bench.retry(after=20)
    back()
    with pytest.raises(LakeError, match=rf"/{name}: is older than the journal"):
        bench.replica("main")


@in_full
def test_a_boundary_from_before_claims_were_dropped(bench: Bench) -> None:
    """Nothing was settled since: the collection itself takes a note."""
    bench.queries(late := query("n", 3 * 86400))
    bench.clicks(click("new", 3 * 86400 + 1, late, position=1))
    bench.clock.now = NOON + 3 * 86400 + 60
    drain(bench)
    back = keep(bench, "registry_boundary")
    upkeep.gc(bench.spark, bench.pipeline, "main", print, wait=0)
    assert list(bench.claims()) == ["new"]
    back()
    with pytest.raises(LakeError, match=r"registry_boundary: is older .* was noted in the journal"):
        bench.replica("main")
    rebuild(bench, "registry")
    drain(bench, "west")
    assert bench.hosts("joined") == ["a", "c", "new"]


@in_full
def test_a_timeline_from_before_its_entry_was_in_force(bench: Bench) -> None:
    back = keep(bench, "shard_timeline")
    reshard(bench.engine.lake.delta, bench.pipeline, 9, None, datetime.now(UTC))
    back()
    with pytest.raises(LakeError, match=r"shard_timeline: is older .* was noted in the journal"):
        bench.replica("main")


SINCE = datetime.fromtimestamp(NOON, UTC) + timedelta(hours=3)


@pytest.fixture
def resharded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Clicks that landed by an entry of the timeline, unclaimed; it puts the table back to before the entry."""
    back = keep(bench, "shard_timeline")
    reshard(bench.engine.lake.delta, bench.pipeline, 9, SINCE, SINCE - timedelta(hours=2))
    bench.clock.now = SINCE.timestamp() + 600
    asked = query("asked", 3 * 3600)
    bench.queries(asked)
    bench.clicks(*(click(f"n{n}", 3 * 3600 + 1 + n, asked, position=1) for n in range(9)))
    stopped(monkeypatch, "landed", lambda: bench.engine.join_once())
    return back


def test_an_entry_that_the_timeline_lost_is_written_again(bench: Bench, resharded: Callable[[], None]) -> None:
    entries, landed = load_timeline(bench.engine.lake.delta), bench.rows("foreign", "event_id", "shard")
    resharded()
    rebuild(bench, "registry")
    assert load_timeline(bench.engine.lake.delta) == entries
    drain(bench)
    drain(bench, "west")
    # In another shard, another replica's claim of the same event would not be seen.
    assert set(bench.rows("registry", "event_id", "shard")) <= set(landed)
    assert bench.hosts("joined") == ["a", "c", *(f"n{n}" for n in range(9))]


@in_full
def test_an_entry_that_nothing_knows_any_more_is_not_guessed(
    bench: Bench, resharded: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    resharded()
    monkeypatch.setattr(rebuilding, "read_log", lambda path: TableLog(txns={}))
    words = r"event n\d:.* lies in shard \d, where no.*Restore the newest copy of `shard_timeline`"
    with pytest.raises(LakeError, match=words):
        rebuild(bench, "registry")


@in_full
def test_a_registry_from_before_a_redrive(bench: Bench) -> None:
    back = keep(bench, "registry")
    assert bench.engine.redrive() == 1
    back()
    with pytest.raises(LakeError, match=r"registry: is older than .*batch 1 of bench/main/redrive"):
        bench.replica("main")
    rebuild(bench, "registry")
    assert "gone" not in bench.claims()
    drain(bench)
    assert agrees(bench)


@pytest.mark.parametrize("how", some(["gone", "empty"], 2))
def test_the_newest_commit_of_the_registry_is(bench: Bench, how: str) -> None:
    more(bench, "d")
    entry = newest(bench, "registry")
    entry.write_bytes(b"") if how == "empty" else entry.unlink()
    words = "json: is empty; what was" if how == "empty" else "registry: is older than the journal, or has lost commits"
    for replica in ("main", "west"):
        with pytest.raises(LakeError, match=words):
            bench.replica(replica)
    rebuild(bench, "registry")
    drain(bench, "west")
    assert bench.places()["joined"] == ["a", "c", "d"]


def test_the_newest_commit_of_the_journal_is_empty(bench: Bench) -> None:
    more(bench, "d")
    newest(bench, "journal").write_bytes(b"")
    with pytest.raises(LakeError, match="json: is empty"):
        bench.replica("main")
    rebuild(bench, "journal")
    drain(bench)
    assert agrees(bench)


def test_the_newest_commit_of_the_journal_is_gone(bench: Bench) -> None:
    """As after a crash before it: the batch is settled once more."""
    more(bench, "d")
    newest(bench, "journal").unlink()
    drain(bench)
    drain(bench, "west")
    assert bench.places()["joined"] == ["a", "c", "d"]
    assert agrees(bench)


def test_every_job_refuses(bench: Bench) -> None:
    back = keep(bench, "registry")
    more(bench, "d")
    back()
    jobs = {name: {} for name in ("join", "retry", "redrive", "gc", "quality")}
    for name, more_ in {**jobs, "reshard": {"shards": 9}, "close_day": {"date": "2026-03-01"}}.items():
        with pytest.raises(LakeError, match="registry: is older"):
            JOBS[name].run(bench.spark, bench.pipeline, "main", print, **more_)


@pytest.mark.parametrize(("sequence", "point"), crossed(["join", "retry"], some(failpoint.POINTS, 4)))
def test_a_batch_cut_short_is_accepted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, sequence: str, point: str
) -> None:
    bench.queries(LATER)
    bench.clicks(click("d", 8, Q, position=1), click("e", 8, Q, position=9), click("x", -86400 * 9, Q), "{broken")
    if sequence == "retry":
        bench.join()
        bench.clock.now += 20
    work = {"join": lambda: bench.engine.join_once(), "retry": lambda: bench.engine.retry_once()}[sequence]
    stopped(monkeypatch, point, work)
    bench.engine = bench.replica("main")
    bench.replica("west")
    bench.clock.now += 20
    drain(bench)
    assert bench.hosts("joined") == ["a", "c", "d", "wc"]
    assert agrees(bench)


REDRIVEN = ("commit_txn_only registry", "append pending", "delete_matched registry", "commit_txn_only unjoinable")


@pytest.mark.parametrize("commit", some(REDRIVEN, 4))
def test_a_redrive_cut_short_is_accepted(bench: Bench, monkeypatch: pytest.MonkeyPatch, commit: str) -> None:
    way, table = commit.split()
    lake = bench.engine.lake
    owner = lake.delta if way == "commit_txn_only" else lake
    real = getattr(owner, way)

    def once(name: str, *more: object) -> object:
        done = real(name, *more)
        if name == table:
            raise KeyboardInterrupt
        return done

    with monkeypatch.context() as patch:
        patch.setattr(owner, way, once)
        with pytest.raises(KeyboardInterrupt):
            bench.engine.redrive()
    bench.engine = bench.replica("main")
    rebuild(bench, "registry")  # which must leave it alone as well
    bench.engine.finish_redrive()
    assert "gone" not in bench.claims()
    drain(bench)
    assert agrees(bench)


@pytest.mark.parametrize("point", some(failpoint.GC_POINTS, 4))
def test_a_collection_cut_short_is_accepted(bench: Bench, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    bench.queries(late := query("n", 3 * 86400))
    bench.clicks(click("new", 3 * 86400 + 1, late, position=1))
    bench.clock.now = NOON + 3 * 86400 + 60
    drain(bench)
    bench.clicks(click("open", 3 * 86400 + 2, late, position=1))
    stopped(monkeypatch, "planned", lambda: bench.engine.join_once())
    collect = lambda: upkeep.gc(bench.spark, bench.pipeline, "main", print, wait=0)  # noqa: E731
    stopped(monkeypatch, point, collect)
    bench.replica("main")
    collect()
    drain(bench)
    assert agrees(bench)


@pytest.mark.parametrize("point", failpoint.RESHARD_POINTS)
def test_a_resharding_cut_short_is_accepted(bench: Bench, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    now = datetime.fromtimestamp(bench.clock.now, UTC)
    since = (now + timedelta(hours=2)).replace(minute=0, second=0, microsecond=0)
    stopped(monkeypatch, point, lambda: reshard(bench.engine.lake.delta, bench.pipeline, 7, since, now))
    bench.engine = bench.replica("main")
    more(bench, "d")
    bench.replica("west")
