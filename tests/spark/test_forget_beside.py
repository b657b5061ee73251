"""What was forgotten stays so beside batches that run, after crashes and repairs, and where its list is lost."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from clickjoin.dates.backfill import RawLogs, land
from clickjoin.dates.rebuild import rebuild
from clickjoin.erasure import forget as erasure
from clickjoin.event_store import landing
from clickjoin.jobs.upkeep import rebuild as rebuild_table
from clickjoin.model.errors import LakeError
from tests.sampled import in_full, some
from tests.spark.bench import Bench, click, query
from tests.spark.count import agrees
from tests.spark.hand import found, stopped, verify
from tests.spark.person import MARCH_1, SECRET, P, Q, gone, holding, mine, other, run
from tests.spark.person import bench as bench
from tests.spark.person import forgotten_before as forgotten_before


def test_a_registry_from_before_it_is_refused(bench: Bench, tmp_path: Path) -> None:
    shutil.copytree(bench.disk / "registry", tmp_path / "registry")
    run(bench)
    shutil.rmtree(bench.disk / "registry")
    shutil.copytree(tmp_path / "registry", bench.disk / "registry")
    with pytest.raises(LakeError, match=r"registry: is older .* was noted in the journal"):
        bench.replica("main")


@pytest.mark.usefixtures("forgotten_before")
@pytest.mark.parametrize("big", some([True, False], 2), ids=lambda big: "by tasks" if big else "here")
def test_logs_that_are_read_again_bring_nothing_back(bench: Bench, big: bool) -> None:
    """A second replica, and the same logs as raw logs of the past; a click on the query that is gone finds none."""
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
    assert agrees(bench)
    report = verify(bench)
    assert found(report) == {}
    assert verify(bench, repair=True).ok
    assert holding(bench) == {}
    assert bench.places()["joined"] == ["c", "g", "h"]


@pytest.mark.usefixtures("forgotten_before")
def test_without_the_list_they_would_come_back(bench: Bench) -> None:
    """What guards the promise, taken away: the same replica then stores the records once more."""
    DeltaTable(f"{bench.pipeline.root}/forgotten").delete()
    west = bench.replica("west")
    while west.join_once():
        pass
    assert set(holding(bench)) >= {"primary", "foreign", "quarantine"}
    assert bench.places()["joined"] == ["c", "g", "h"]  # their claims alone keep them out of the output


@pytest.mark.usefixtures("forgotten_before")
def test_a_lost_list_is_refused(bench: Bench) -> None:
    bench.clicks(other("i", 41, Q))
    bench.engine = bench.replica("main")
    bench.join()
    shutil.rmtree(bench.disk / "forgotten")
    with pytest.raises(LakeError, match=r"table forgotten is missing from a lake that has been worked in. Restore it"):
        bench.replica("main")


@pytest.mark.usefixtures("forgotten_before")
def test_a_list_that_cannot_be_read_is_refused(bench: Bench) -> None:
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


@pytest.mark.usefixtures("forgotten_before")
@in_full
def test_rebuilding_brings_nothing_back(bench: Bench) -> None:
    """A date by today's adapter, the registry, the journal."""
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
    assert agrees(bench)
    assert found(verify(bench)) == {}


@pytest.mark.parametrize("point", some(["claimed", "planned", "landed", "published"], 4))
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
    assert agrees(bench)
    assert found(verify(bench)) == {}


@pytest.mark.parametrize("point", some(["swept-primary", "claims-kept", "listed", "swept", "swept-foreign"], 5))
def test_cut_short_it_is_asked_for_again(bench: Bench, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    stopped(monkeypatch, point, lambda: run(bench))
    if point != "swept":
        left = {"not_forgotten": sum(run(bench, apply=False)["rows"].values())}
        unclaimed = {"forgotten_without_claim": 1} if point == "listed" else {}  # b, which waits
        assert found(verify(bench)) == left | unclaimed
    run(bench)
    gone(bench)


@pytest.mark.usefixtures("forgotten_before")
def test_verification_finds_what_a_sleeper_lands_and_takes_it_out(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that has read the list, sleeps, and lands what it read as if nothing had been forgotten."""
    west = bench.replica("west")
    with monkeypatch.context() as patch:
        patch.setattr(landing, "not_to_land", lambda _, **__: {})
        while west.join_once():
            pass
    assert set(holding(bench)) >= {"primary", "foreign"}
    assert found(verify(bench)) == {"not_forgotten": 6}
    assert verify(bench, repair=True).ok
    assert holding(bench) == {}
    assert bench.places()["joined"] == ["c", "g", "h"]


@in_full
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
            patch.setattr(landing, "not_to_land", lambda _, **__: {})
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
    assert agrees(bench)
    assert set("cghw") <= set(bench.places()["joined"])
