"""A person's events leave every table and do not come back, and all else stays: counted in the files themselves."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from clickjoin import batch
from clickjoin.dates.backfill import RawLogs, land
from clickjoin.dates.rebuild import rebuild
from clickjoin.erasure import forget as erasure
from clickjoin.event_store import landing
from clickjoin.forgotten.known import forgotten
from clickjoin.jobs.erasing import forget
from clickjoin.jobs.registry import rebuild as rebuild_table
from clickjoin.lake.vacuum import Needed, vacuum
from clickjoin.model.errors import LakeError
from clickjoin.model.span import Span
from clickjoin.registry.boundary import advance
from clickjoin.report.explain import explain
from tests.sampled import some
from tests.spark.bench import NOON, Bench, click, event_id, query
from tests.spark.hand import found, stopped, verify

# What only records of the person hold: nothing but a record can bring it into a table.
SECRET = "s3cr3t-of-u17"
OTHERS = "cdgh"
TABLES = ("primary", "foreign", "joined", "filtered", "unjoinable", "expired", "pending", "quarantine", "findings")
MARCH_1 = Span(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))
P, Q, NEVER = query("p", 0, user={"id": 17, "note": SECRET}), query("q", 1, user={"id": 4}), query("never", 9)


def mine(host: str, seconds: float, of: Any, **more: Any) -> dict[str, Any]:
    return click(host, seconds, of, user_id="U17", note=SECRET, **more)


def other(host: str, seconds: float, of: Any) -> dict[str, Any]:
    return click(host, seconds, of, user_id="U1")


@pytest.fixture(scope="module")
def whole(make: Any) -> Bench:
    """Of user U17: a joined, b pending, u given up, e expired, and f a click without a name on their query p.

    Of others: c, g and h joined, d waits.
    """
    made: Bench = make(
        retry={"max_attempts": 2, "max_age": "5s", "first_delay": "10s", "backoff": 1},
        backfill={"roots": ["."]},
    )
    made.queries(P, Q)
    made.clicks(
        mine("a", 2, Q), mine("u", 3, NEVER), other("c", 4, Q), click("f", 5, P), other("g", 6, Q), other("h", 7, Q)
    )
    made.clicks(f'{{"user_id": "U17", "note": "{SECRET}", broken', '{"user_id": "U170", broken')
    made.join()
    made.retry(after=11)
    made.clicks(mine("b", 30, NEVER), other("d", 31, NEVER))
    made.join()
    assert made.places() == {"joined": ["a", "c", "f", "g", "h"], "unjoinable": ["u"], "pending": ["b", "d"]}
    return made


@pytest.fixture
def bench(whole: Bench, tmp_path: Path) -> Iterator[Bench]:
    """That lake, put back afterwards."""
    pipeline = whole.pipeline
    with whole.kept(tmp_path / "kept"):
        yield whole
        whole.pipeline = pipeline
        shutil.rmtree(whole.folder / "old", ignore_errors=True)


def run(bench: Bench, *where: str, apply: bool = True, ids: str | None = None, **more: Any) -> dict[str, Any]:
    said: list[str] = []
    wanted = {"where": "\n".join(where or ("foreign.user_id=U17", "primary.user.id=17")), "ids": ids}
    return forget(bench.spark, bench.pipeline, "main", said.append, apply=apply, wait=0, **wanted, **more)


def holding(bench: Bench, text: str = SECRET) -> dict[str, int]:
    """Rows of the newest version of each table that hold a text in any column: by no code of ours."""
    held = {}
    for folder in sorted(bench.disk.iterdir()):
        if (folder / "_delta_log").is_dir():
            rows = DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
            held[folder.name] = sum(text in repr(row) for row in rows)
    return {name: count for name, count in held.items() if count}


def in_files(bench: Bench) -> int:
    """Data files of all versions that hold the person's text."""
    files = [path for path in bench.disk.rglob("*.parquet") if "_delta_log" not in path.parts]
    return sum(SECRET in repr(pq.read_table(path, partitioning=None).to_pylist()) for path in files)


def gone(bench: Bench) -> None:
    """Nothing of the person is in any table; everything of others is where it was; the sums and proofs agree."""
    assert holding(bench) == {}
    bench.engine = bench.replica("main")
    assert bench.places() == {"joined": ["c", "g", "h"], "pending": ["d"]}
    assert {host: outcome for host, (_, outcome) in bench.claims().items()} == {
        "a": "joined", "b": "forgotten", "c": "joined", "f": "joined", "g": "joined", "h": "joined", "u": "unjoinable",
    }  # fmt: skip
    sums = bench.accounts()
    assert (sums["agree"], sums["accepted"], sums["forgotten"]) == (True, 8, 4)
    assert found(verify(bench)) == {}


def test_a_dry_run_says_what_would_go_and_changes_nothing(bench: Bench) -> None:
    before = bench.all_tables()
    said = run(bench, apply=False)
    assert said["dry_run"]
    assert (said["events"], said["bad_records"]) == ({"primary": 1, "foreign": 4}, 1)
    assert said["rows"] == {
        "primary": 1, "foreign": 4, "joined": 2, "pending": 2, "unjoinable": 1, "quarantine": 1
    }  # fmt: skip
    assert said["samples"]["primary"] == [P["event_id"]]
    assert bench.all_tables() == before


def test_they_leave_every_table_and_all_else_stays(bench: Bench) -> None:
    others = [row for row in bench.rows("joined") if row[0][0] in OTHERS]
    assert set(holding(bench)) == {"primary", "foreign", "joined", "pending", "unjoinable", "quarantine"}
    said = run(bench, request="GDPR-1")
    assert said["open"] == []
    assert bench.rows("forgotten", "stream", "event_id", "request")[-1] == ("primary", P["event_id"], "GDPR-1")
    gone(bench)
    assert bench.rows("joined") == others
    assert {row[:2] for row in bench.rows("foreign", "payload", "primary_id") if row[0] == "{}"} == {("{}", "")}
    report = verify(bench)
    assert {count.kind: count.count for count in report.counts}["forgotten"] == 4
    again = run(bench)
    assert (again["events"], again["rows"]) == ({"primary": 0, "foreign": 0}, {})
    state = explain(bench.pipeline, bench.engine.lake.delta, event_id("a", 2))
    assert (state["state"], state["history"][-1]["request"]) == ("forgotten", "GDPR-1")


def test_a_repair_brings_nothing_back(bench: Bench) -> None:
    run(bench)
    report = verify(bench, repair=True)
    assert not any(count.repaired for count in report.counts)
    bench.clock.now += 100
    while bench.engine.retry_once():
        pass
    assert bench.engine.redrive() == 1  # d, which was given up
    bench.retry(after=1)
    gone(bench)


def test_claims_that_somebody_deleted_are_given_back(bench: Bench) -> None:
    """Without them the events, read again, would wait for a primary, and be given up: two places for one id."""
    run(bench)
    table = DeltaTable(f"{bench.pipeline.root}/registry")
    assert table.delete("outcome = 'forgotten'")["num_deleted_rows"]
    deleted = {event for event, at in forgotten(bench.engine.lake.delta).of("foreign")} - set(claimed(bench))
    assert deleted
    report = verify(bench, repair=True)
    assert found(report) == {"forgotten_without_claim": len(deleted)}
    assert deleted <= set(claimed(bench))
    assert not found(verify(bench))
    west = bench.replica("west")
    bench.clock.now += 100
    while west.join_once() or west.retry_once():
        pass
    assert not deleted & {row[0] for name in ("pending", "unjoinable") for row in bench.rows(name, "event_id")}


def claimed(bench: Bench) -> list[str]:
    return [row[0] for row in bench.rows("registry", "event_id")]


def test_a_registry_from_before_it_is_refused(bench: Bench, tmp_path: Path) -> None:
    shutil.copytree(bench.disk / "registry", tmp_path / "registry")
    run(bench)
    shutil.rmtree(bench.disk / "registry")
    shutil.copytree(tmp_path / "registry", bench.disk / "registry")
    with pytest.raises(LakeError, match=r"registry: is older .* was noted in the journal"):
        bench.replica("main")


@pytest.mark.parametrize("big", some([True, False], 2), ids=lambda big: "by tasks" if big else "here")
def test_logs_that_are_read_again_bring_nothing_back(bench: Bench, big: bool) -> None:
    """A second replica, and the same logs as raw logs of the past; a click on the query that is gone finds none."""
    run(bench)
    if big:
        batch = bench.pipeline.batch.model_copy(update={"driver_bytes": 0})
        bench.pipeline = bench.pipeline.model_copy(update={"batch": batch})
    late = click("z", 40, P, user_id="U2")
    bench.clicks(late)
    west = bench.replica("west")
    while west.join_once():
        pass
    folder = bench.folder
    for stream in ("primary", "foreign"):
        (folder / "old" / stream).mkdir(parents=True)
        shutil.copy(folder / stream / "0.jsonl", folder / "old" / stream / "copy.jsonl")
    land(bench.replica("main"), RawLogs(f"{folder}/old/primary/*", f"{folder}/old/foreign/*"), lambda _: None)
    assert holding(bench) == {}
    assert "z" not in bench.places()["joined"]
    assert bench.accounts()["agree"]
    report = verify(bench)
    assert found(report) == {}
    assert verify(bench, repair=True).ok
    assert holding(bench) == {}
    assert bench.places()["joined"] == ["c", "g", "h"]


def test_without_the_list_they_would_come_back(bench: Bench) -> None:
    """What guards the promise, taken away: the same replica then stores the records once more."""
    run(bench)
    DeltaTable(f"{bench.pipeline.root}/forgotten").delete()
    west = bench.replica("west")
    while west.join_once():
        pass
    assert set(holding(bench)) >= {"primary", "foreign", "quarantine"}
    assert bench.places()["joined"] == ["c", "g", "h"]  # their claims alone keep them out of the output


def test_a_lost_list_is_refused(bench: Bench) -> None:
    run(bench)
    bench.clicks(other("i", 41, Q))
    bench.engine = bench.replica("main")
    bench.join()
    shutil.rmtree(bench.disk / "forgotten")
    with pytest.raises(LakeError, match=r"forgotten: the table is missing, and events had been forgotten\. Restore it"):
        bench.replica("main")


def test_a_list_that_cannot_be_read_is_refused(bench: Bench) -> None:
    run(bench)
    for file in (bench.disk / "forgotten").rglob("*.parquet"):
        if "_delta_log" not in file.parts:
            file.unlink()
    bench.clicks(other("i", 41, Q))
    bench.engine = bench.replica("main")
    with pytest.raises(LakeError, match=r"forgotten: the list of what was forgotten cannot be read"):
        bench.join()
    for repair in (False, True):
        with pytest.raises(LakeError, match=r"forgotten/.*parquet: .*, and nothing else holds its"):
            verify(bench, repair=repair)


def test_rebuilding_brings_nothing_back(bench: Bench) -> None:
    """A date by today's adapter, the registry, the journal."""
    run(bench)
    assert rebuild(bench.replica("main"), MARCH_1, 1)["rebuilt"] == 3
    rebuild_table(bench.spark, bench.pipeline, "main", print, what="registry", replace=True)
    bench.engine = bench.replica("main")
    claims = bench.claims()
    assert {host for host, (_, outcome) in claims.items() if outcome == "forgotten"} == {"a", "b", "f", "u"}
    rebuild_table(bench.spark, bench.pipeline, "main", print, what="journal", replace=True)
    west = bench.replica("west")
    while west.join_once():
        pass
    bench.engine = bench.replica("main")
    assert bench.engine.lake.delta.rows("joined") == 3
    assert holding(bench) == {}
    assert bench.accounts()["agree"]
    assert found(verify(bench)) == {}


def test_what_expired_is_forgotten_too(bench: Bench) -> None:
    advance(bench.engine.lake.delta, 4, datetime.fromtimestamp(NOON, UTC), datetime.now(UTC))
    bench.clicks(mine("e", -60, Q))
    bench.engine = bench.replica("main")
    bench.join()
    assert bench.hosts("expired") == ["e"]
    run(bench)
    assert bench.hosts("expired") == []
    assert "e" not in bench.claims()
    west = bench.replica("west")
    while west.join_once():
        pass
    assert bench.rows("expired", "payload", "primary_id") == [("{}", "")]
    assert holding(bench) == {}
    bench.engine = bench.replica("main")
    assert (bench.accounts()["agree"], bench.accounts()["forgotten"]) == (True, 5)


@pytest.mark.parametrize("point", some(["landed", "planned", "claimed", "published"], 2))
def test_beside_a_batch_that_was_cut_short(bench: Bench, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """Wherever it stopped: what it claimed is carried through and goes; what it lands later holds no record."""
    bench.queries(query("r", 50, user={"id": 17, "note": SECRET}))
    bench.clicks(mine("v", 51, Q), other("w", 52, Q), other("x", 53, query("r", 50)))
    stopped(monkeypatch, point, bench.engine.join_once)
    said = run(bench)
    assert said["open"] == (["bench/main/join/3"] if point in ("planned", "landed") else [])
    bench.engine = bench.replica("main")
    while bench.engine.join_once():
        pass
    if said["open"]:
        run(bench)
    assert holding(bench) == {}
    joined = bench.places()["joined"]
    assert [host for host in joined if host in "avfx"] == []
    assert set("cghw") <= set(joined)
    assert bench.accounts()["agree"]
    assert found(verify(bench)) == {}


@pytest.mark.parametrize("point", some(["listed", "claims-kept", "swept-primary", "swept", "swept-foreign"], 4))
def test_cut_short_it_is_asked_for_again(bench: Bench, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    stopped(monkeypatch, point, lambda: run(bench))
    if point != "swept":
        left = {"not_forgotten": sum(run(bench, apply=False)["rows"].values())}
        unclaimed = {"forgotten_without_claim": 1} if point == "listed" else {}  # b, which waits
        assert found(verify(bench)) == left | unclaimed
    run(bench)
    gone(bench)


def test_verification_finds_what_a_sleeper_lands_and_takes_it_out(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that has read the list, sleeps, and lands what it read as if nothing had been forgotten."""
    run(bench)
    west = bench.replica("west")
    with monkeypatch.context() as patch:
        patch.setattr(landing, "not_to_land", lambda _: {})
        while west.join_once():
            pass
    assert set(holding(bench)) >= {"primary", "foreign"}
    assert found(verify(bench)) == {"not_forgotten": 6}
    assert verify(bench, repair=True).ok
    assert holding(bench) == {}
    assert bench.places()["joined"] == ["c", "g", "h"]


def test_a_batch_that_claims_before_the_sweep_is_carried_through_after_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has read the list before, and dies once it has claimed: only what was forgotten is missing in the end."""
    bench.clicks(other("w", 52, Q), other("x", 53, P), mine("y", 54, P))
    late = bench.replica("main")
    stopped(monkeypatch, "planned", late.join_once)
    sweep = erasure.sweep

    def swept_late(*given: Any) -> dict[str, int]:
        with monkeypatch.context() as patch:
            patch.setattr(erasure, "sweep", sweep)
            patch.setattr(landing, "not_to_land", lambda _: {})
            stopped(monkeypatch, "claimed", bench.replica("main").join_once)
            return sweep(*given)

    with monkeypatch.context() as patch:
        patch.setattr(erasure, "sweep", swept_late)
        assert run(bench)["open"] == ["bench/main/join/3"]
    bench.engine = bench.replica("main")
    while bench.engine.join_once():
        pass
    assert bench.places()["joined"] == ["c", "g", "h", "w"]
    assert verify(bench, repair=True).ok
    run(bench)
    assert holding(bench) == {}
    assert found(verify(bench)) == {}
    assert bench.accounts()["agree"]
    assert set("cghw") <= set(bench.places()["joined"])


@pytest.mark.parametrize("how", ["arrow", "spark"])
@pytest.mark.parametrize("primary_time", ["asked", {"lookback": "1h"}], ids=["time", "lookback"])
def test_of_two_events_with_one_id_only_one_is_forgotten(
    make: Any, monkeypatch: pytest.MonkeyPatch, how: str, primary_time: Any
) -> None:
    """Whoever names the other finds it still, although it is read later."""
    monkeypatch.setattr(batch, "can_join", lambda ctx: how == "arrow")
    made: Bench = make(primary={"event_time": "at"}, foreign={"primary_time": primary_time})
    at = [datetime.fromtimestamp(NOON + seconds, UTC).isoformat() for seconds in (0, 20)]
    mine, others = ({"event_id": "Q", "at": moment, "user": {"id": n}} for moment, n in zip(at, (17, 4), strict=True))
    made.queries(mine, others)
    made.join()
    assert run(made)["events"] == {"primary": 1, "foreign": 0}
    made.clicks(click("b", 30, others, asked=at[1]))
    made.join()
    assert made.places() == {"joined": ["b"]}
    assert json.loads(made.rows("joined", "primary")[0][0])["user"] == {"id": 4}


def test_in_a_lake_whose_output_lies_by_date(make: Any) -> None:
    made: Bench = make(
        output={"partition": ["event_date"], "columns": {"who": {"from": "foreign.user_id", "type": "STRING"}}}
    )
    made.queries(P, Q)
    made.clicks(mine("a", 2, Q), other("c", 4, Q), mine("m", 86_400, Q))
    made.clock.now += 86_400
    made.join()
    assert made.places() == {"joined": ["a", "c", "m"]}
    assert run(made, "joined.who=U17")["rows"]["joined"] == 2
    assert holding(made) == {"primary": 1}  # of the query nobody has asked
    assert made.places() == {"joined": ["c"]}
    assert made.accounts()["agree"]
    assert found(verify(made)) == {}


def test_by_ids_and_by_values_of_the_output(bench: Bench, tmp_path: Path) -> None:
    ids = tmp_path / "ids"
    ids.write_text(f"{event_id('h', 7)}\nnobody\n")
    assert run(bench, "joined.foreign.user_id=U1", apply=False)["events"] == {"primary": 0, "foreign": 3}
    wanted = {"where": None, "ids": str(ids)}
    said = forget(bench.spark, bench.pipeline, "main", print, apply=True, wait=0, **wanted)
    assert said["events"] == {"primary": 0, "foreign": 1}
    assert "h" not in bench.places()["joined"]
    assert set(holding(bench, event_id("h", 7))) == {"foreign", "registry", "forgotten"}
    assert ("{}",) in bench.rows("foreign", "payload")


def test_the_bytes_go_with_gc(bench: Bench) -> None:
    """Older versions hold the records until GC removes their files, once they are older than retention.files."""
    run(bench)
    assert in_files(bench) > 0
    for name in TABLES:
        if (bench.disk / name).is_dir():
            delta = bench.replica("main").lake.delta
            vacuum(delta, name, Needed(since=4e9))
    assert in_files(bench) == 0
    gone(bench)
