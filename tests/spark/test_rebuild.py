"""A registry or a journal that was lost is rebuilt: nothing is joined twice after, and nothing is lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from clickjoin.engines.arrow import ArrowTables
from clickjoin.jobs.upkeep import rebuild
from clickjoin.lake.committer import committer
from clickjoin.lake.s3_table import S3Table
from clickjoin.model import failpoint
from clickjoin.model.errors import BatchError, ConfigError, LakeError, LakeReplaced
from clickjoin.model.txn import Txn
from clickjoin.rebuild import registry as registry_rebuild
from clickjoin.rebuild.registry import rebuild as rebuild_registry
from clickjoin.registry.boundary import load_boundary
from clickjoin.registry.reshard import reshard
from clickjoin.registry.shards import fence, fixed, load_timeline
from clickjoin.verification.verify import Verifier, Wanted
from tests.sampled import in_full, some
from tests.spark.bench import NOON, Bench, click, query
from tests.spark.count import agrees

NOW = datetime.fromtimestamp(NOON + 60, UTC)
Q, LATE, NEVER = query("q"), query("late", 1), query("never", 2)
CLICKS = [click("a", 2, Q, position=1), click("drop", 3, Q, position=9), click("b", 4, LATE, position=2)]


@pytest.fixture(scope="module")
def built(make: Callable[..., Bench]) -> Bench:
    """Joined, filtered, given up and pending: one of each."""
    made = make(
        adapter="clickjoin.examples.adapters:TopPositions",
        retry={"max_attempts": 2, "max_age": "5s"},
        registry={"retention": "1d", "shards": 3},
    )
    made.queries(Q)
    made.clicks(CLICKS[0], CLICKS[1], "{broken", click("gone", 5, NEVER, position=1))
    made.join()
    made.retry(after=20)
    made.queries(LATE)
    made.clicks(CLICKS[2], click("waits", 6, query("later", 3), position=1))
    made.join()
    assert made.places() == {"joined": ["a", "b"], "filtered": ["drop"], "unjoinable": ["gone"], "pending": ["waits"]}
    return made


@pytest.fixture
def bench(built: Bench, tmp_path: Path) -> Iterator[Bench]:
    """That lake, to be lost: it is put back afterwards."""
    with built.kept(tmp_path / "kept"):
        yield built


def lose(bench: Bench, name: str) -> None:
    shutil.rmtree(bench.disk / name)
    bench.engine.lake.delta.forget(name)


def run_rebuild(bench: Bench, what: str, **more: Any) -> dict[str, Any]:
    found = rebuild(bench.spark, bench.pipeline, "", print, what=what, **more)
    bench.engine = bench.replica("main")
    return found


def test_a_lost_registry_is_what_it_was(bench: Bench) -> None:
    claims = bench.rows("registry")
    lose(bench, "registry")
    with pytest.raises(LakeError, match=r"registry is missing.*`clickjoin registry rebuild`"):
        bench.replica("main")
    done = run_rebuild(bench, "registry")
    assert done["claims"] == {"joined": 2, "filtered": 1, "unjoinable": 1}
    assert bench.rows("registry") == claims
    bench.clicks(*CLICKS)
    assert bench.join() == {"events_in": 3, "repeats": 3}
    assert bench.places() == {"joined": ["a", "b"], "filtered": ["drop"], "unjoinable": ["gone"], "pending": ["waits"]}
    assert bench.engine.redrive() == 1
    assert agrees(bench)


@pytest.mark.parametrize("what", ["registry", "journal"])
def test_a_process_from_before_commits_nothing(bench: Bench, what: str) -> None:
    """Its handle is of a table that is gone: to go on with it would join again what others have joined since."""
    idle = bench.engine
    idle.lake.delta.version("registry")
    run_rebuild(bench, what, replace=True)
    for number in range(3):
        bench.clicks(click(f"new{number}", 20 + number, Q, position=1))
        bench.join()
    with pytest.raises(LakeReplaced, match="a table rebuilt, while this process worked on it"):
        idle.join_once()
    bench.engine = bench.replica("main")
    assert bench.engine.join_once() is None
    assert agrees(bench)
    assert sorted(bench.hosts("joined")) == ["a", "b", "new0", "new1", "new2"]


def test_a_version_of_the_old_registry_cannot_be_committed_to_the_new(bench: Bench) -> None:
    """A process that sleeps between its look and its commit finds the next version taken."""
    path = bench.engine.lake.delta.path("registry")
    handle = S3Table(path) if bench.pipeline.needs_s3 else DeltaTable(path)  # neither asks for the mark of a rebuild
    run_rebuild(bench, "registry", replace=True)
    with pytest.raises(CommitFailedError):
        committer(handle.table_uri).commit_next(handle, [], Txn("bench/main/join", 99))
    assert ArrowTables(bench.pipeline.root).version("registry") > handle.version() + 1


@in_full
def test_a_join_beside_it_is_noticed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    claims, fixed = bench.rows("registry"), registry_rebuild._fixed

    def late(*args: Any) -> Any:
        bench.clicks(click("beside", 30, Q, position=1))
        bench.join()
        return fixed(*args)

    monkeypatch.setattr(registry_rebuild, "_fixed", late)
    with pytest.raises(BatchError, match="was committed to while the registry was rebuilt; the registry is as it was"):
        rebuild(bench.spark, bench.pipeline, "", print, replace=True)
    bench.engine = bench.replica("main")
    assert len(bench.rows("registry")) == len(claims) + 1
    monkeypatch.undo()
    run_rebuild(bench, "registry", replace=True)
    assert len(bench.rows("registry")) == len(claims) + 1
    assert agrees(bench)


@in_full
def test_it_reaches_back_to_the_retention_and_says_so(bench: Bench) -> None:
    lose(bench, "registry")
    run_rebuild(bench, "registry")
    since = datetime.fromtimestamp(NOON, UTC) - timedelta(days=1)
    assert set(load_boundary(bench.engine.lake.delta).values()) == {since}
    old = query("old", -2 * 86400)
    bench.queries(old)
    bench.clicks(click("older", -2 * 86400 + 1, old, position=1))
    assert bench.join()["expired"] == 1


@in_full
def test_a_late_copy_of_a_settled_batch_claims_nothing_after(bench: Bench) -> None:
    """Its query has come meanwhile: on an empty transaction record it could claim, and never publish."""
    bench.queries(query("later", 3))
    bench.clicks(click("new", 7, Q, position=1))
    plan = bench.engine.join.next_join()
    assert plan
    bench.join()
    claims = bench.claims()
    lose(bench, "registry")
    run_rebuild(bench, "registry")
    bench.run_copy(plan)
    assert bench.claims() == claims
    assert agrees(bench)


@pytest.mark.parametrize("point", some(["claimed", "published", "set-aside"], 3))
def test_lost_while_a_batch_was_cut_short(bench: Bench, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    def crash(name: str) -> None:
        if name == point:
            raise KeyboardInterrupt

    bench.clicks(click("c", 8, Q, position=1), click("d", 8, Q, position=9))
    monkeypatch.setattr(failpoint, "reach", crash)
    with pytest.raises(KeyboardInterrupt):
        bench.engine.join_once()
    monkeypatch.undo()
    lose(bench, "registry")
    run_rebuild(bench, "registry")
    bench.join()
    if point == "published":  # the claim on d is lost and the batch fixed: it waits, and is filtered in a retry
        assert bench.places()["pending"] == ["d", "waits"]
        assert bench.retry(after=20)["filtered"] == 1
    assert bench.hosts("joined") == ["a", "b", "c"]
    assert bench.hosts("filtered") == ["d", "drop"]
    assert agrees(bench)


def test_one_that_is_there_is_put_aside_only_when_asked_to(bench: Bench) -> None:
    lake = bench.engine.lake
    with pytest.raises(ConfigError, match="--replace"):
        rebuild_registry(bench.pipeline, lake, NOW)
    done = run_rebuild(bench, "registry", replace=True)
    assert done["old"].startswith(lake.delta.path("registry.put-aside-"))
    assert (bench.on_disk(done["old"]) / "_delta_log").is_dir()
    assert len(bench.claims()) == 4


@in_full
def test_begun_again_where_it_was_cut_short(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    lose(bench, "registry")
    from clickjoin.lake.folders import TableFolders

    monkeypatch.setattr(TableFolders, "rename", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        run_rebuild(bench, "registry")
    monkeypatch.undo()
    with pytest.raises(LakeError, match="registry is missing"):
        bench.replica("main")
    run_rebuild(bench, "registry")
    assert len(bench.claims()) == 4


def test_a_lost_journal_goes_on_where_it_was(bench: Bench) -> None:
    last = bench.engine.join.journal.planned()
    lose(bench, "journal")
    with pytest.raises(LakeError, match=r"journal is missing.*`clickjoin journal rebuild`"):
        bench.replica("main")
    done = run_rebuild(bench, "journal")
    assert done["batches"] == {"main/join": last, "main/retry": 1}
    assert (done["resumed"], done["again"]) == (2, 0)
    assert bench.engine.join_once() is None  # every file goes on where it was
    bench.queries(query("later", 3))
    bench.clicks(click("new", 7, Q, position=1))
    assert bench.join() == {"primary_in": 1, "events_in": 1, "joined": 1}
    assert bench.retry(after=20)["joined"] == 1
    assert bench.places()["joined"] == ["a", "b", "new", "waits"]
    assert agrees(bench)


@in_full
def test_what_a_rebuilt_journal_cannot_prove_is_said(bench: Bench) -> None:
    lose(bench, "journal")
    run_rebuild(bench, "journal")
    bench.engine = bench.replica("main")
    wanted = Wanted(datetime.fromtimestamp(NOON - 60, UTC), datetime.fromtimestamp(NOON + 60, UTC))
    report = Verifier(bench.engine, print).verify(wanted)
    assert report.ok
    assert any(note.startswith("2 batches have rows and no plan in the journal") for note in report.notes), report.notes


@in_full
def test_a_file_that_changed_meanwhile_is_read_again(bench: Bench) -> None:
    lose(bench, "journal")
    log = bench.folder / "foreign" / "0.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[1:] + lines[:1]))
    done = run_rebuild(bench, "journal")
    assert (done["resumed"], done["again"]) == (1, 1)
    assert bench.join()["repeats"] == 4
    assert bench.places()["joined"] == ["a", "b"]


def test_shards_are_those_that_rows_were_placed_by(bench: Bench) -> None:
    delta = bench.engine.lake.delta
    until = NOW + timedelta(hours=2)
    since = until.replace(minute=0)
    reshard(delta, bench.pipeline, 7, since, NOW)
    bench.clock.now = NOON + 4 * 3600
    asked = query("q9", 3 * 3600)
    bench.queries(asked)
    bench.clicks(*(click(f"n{n}", 3 * 3600 + n, asked, position=1) for n in range(8)))
    bench.join()
    timeline = load_timeline(delta)
    row = {"from_time": since + timedelta(days=9), "shards": 5, "added_at": NOW, **fixed(bench.pipeline)}
    delta.append("shard_timeline", [row])  # proposed, and never in force
    lose(bench, "journal")
    done = run_rebuild(bench, "journal")
    assert done["timeline"] == 2
    assert load_timeline(delta) == timeline
    txns = [
        json.loads(line)["txn"]["appId"]
        for entry in sorted((bench.disk / "journal/_delta_log").glob("*.json"))
        for line in entry.read_text().splitlines()
        if "txn" in json.loads(line)
    ]
    first = next(n for n, name in enumerate(txns) if name.endswith("/planned"))
    assert fence(since, 7).app_id in txns[:first], "a batch planned before would place its claims by the entry before"


@in_full
@pytest.mark.parametrize("at", [1, 2, 4, 5])
def test_a_rebuild_of_the_journal_that_is_killed_doubles_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """At any of its commits: by a journal that lacks an entry of the timeline claims would not be found again."""
    delta = bench.engine.lake.delta
    reshard(delta, bench.pipeline, 7, (NOW + timedelta(hours=2)).replace(minute=0), NOW)
    bench.clock.now = NOON + 4 * 3600
    asked = query("q9", 3 * 3600)
    clicks = [click(f"n{n}", 3 * 3600 + n, asked, position=1) for n in range(8)]
    bench.queries(asked)
    bench.clicks(*clicks)
    bench.join()
    handle = DeltaTable(delta.path("journal"))
    left = [at]

    def reach(point: str) -> None:
        if point == "before-commit:journal":
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt

    monkeypatch.setattr(failpoint, "reach", reach)
    with pytest.raises(KeyboardInterrupt):
        rebuild(bench.spark, bench.pipeline, "", print, what="journal", replace=True)
    monkeypatch.undo()
    try:
        bench.engine = bench.replica("main")
    except LakeError:  # the journal is older than other tables
        run_rebuild(bench, "journal", replace=True)
    assert ArrowTables(bench.pipeline.root).version("journal") > handle.version() + 1
    bench.clicks(*clicks)
    bench.join()
    assert sorted(bench.hosts("joined")) == ["a", "b", *(f"n{n}" for n in range(8))]
    assert agrees(bench)


@in_full
def test_what_a_killed_rebuild_has_put_aside_counts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that sleeps between its look at the former registry and its commit finds the next version taken."""
    monkeypatch.setattr("clickjoin.rebuild.registry.UNKNOWN", 0)
    for number in range(1, 9):  # so that it is further than any log of the rebuilt one comes by itself
        bench.engine.lake.delta.commit_txn_only("registry", Txn("older", number))
    handle = DeltaTable(bench.engine.lake.delta.path("registry"))
    with monkeypatch.context() as patch:
        patch.setattr(registry_rebuild, "go_on_after", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            rebuild(bench.spark, bench.pipeline, "", print, what="registry", replace=True)
    run_rebuild(bench, "registry")
    with pytest.raises(CommitFailedError):
        committer(handle.table_uri).commit_next(handle, [], Txn("bench/main/join", 99))
    assert ArrowTables(bench.pipeline.root).version("registry") > handle.version() + 1


def test_a_journal_that_is_there_is_left_alone(bench: Bench) -> None:
    with pytest.raises(ConfigError, match="the journal is there"):
        run_rebuild(bench, "journal")
