"""Per-key processing in backups: a restored one goes on from where it was, and nothing is counted or reported twice."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from clickjoin.backup import processed, snapshot
from clickjoin.backup import take as takes
from clickjoin.backup.restore import RestoreResult, restore
from clickjoin.backup.take import BackupResult, take
from clickjoin.lake.snapshot_files import Look
from clickjoin.lake.vacuum import Needed, vacuum
from clickjoin.model.errors import BatchError, LakeError, LakeReplaced
from clickjoin.processing.check import check
from tests.sampled import in_full, some
from tests.unit.processing_bench import (
    FIRST,
    MINUTE,
    NOON,
    SECOND,
    SECOND_BATCH,
    Event,
    Output,
    by_text,
    expected,
    killed_at,
    two_batches,
)  # fmt: skip

C1 = ("c1", "shoes", NOON + 100 * SECOND)
D1 = ("d1", "hats", NOON + 130 * SECOND)
E1 = ("e1", "hats", NOON + 140 * SECOND)
END = NOON + 10 * MINUTE


def backup(out: Output) -> BackupResult:
    return take(out.pipeline, out.file.parent / "backups", print, wait=5.0)


def back(out: Output, *, force: bool = True) -> RestoreResult:
    """Restore the newest backup; the join goes on from it."""
    done = restore(out.pipeline, out.file.parent / "backups", "", print, force=force)
    out.reopen()
    return done


def require_right(out: Output, events: list[Event], late: int = 0) -> None:
    """Publish what is over, and check that each event was counted once and each signal reported once."""
    out.publish([], END)
    out.drain()
    assert by_text(out.signals()) == expected(events, END)
    found = check(out.pipeline)
    assert (found.events, found.late, found.faults, found.notes) == (len(events), late, (), ())
    assert out.drain() == []


def test_it_goes_on_from_where_it_was(tmp_path: Path) -> None:
    """What was joined and counted since is joined again, and counted again in the state of before."""
    out = two_batches(tmp_path)
    out.drain()
    taken = backup(out)
    out.publish([C1, D1], NOON + 2 * MINUTE)
    out.drain()
    done = back(out)
    assert done.aside
    assert {name for name in done.versions if name.startswith("process/")} == {
        "process/journal", "process/state", "process/signals", "process/late", "process/processed"
    }  # fmt: skip
    assert taken.manifest.under_way == ()
    out.publish([C1], NOON + 2 * MINUTE)
    (row,) = out.drain()
    assert (row["batch"], row["events"]) == (3, 1)
    out.publish([D1, E1], NOON + 2 * MINUTE)
    require_right(out, [*FIRST, *SECOND_BATCH, C1, D1, E1])


@pytest.mark.parametrize("point", some(["process-state", "process-planned", "process-published"], 3))
def test_a_batch_was_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """Killed after the plan, or between the commit of state and publishing: the next run does the rest of it."""
    out = two_batches(tmp_path)
    killed_at(point, monkeypatch, out.processing().once)
    taken = backup(out)
    assert taken.manifest.under_way == ("shop/main/process/2",)
    out.drain()
    out.publish([C1], NOON + 2 * MINUTE)
    out.drain()
    back(out)
    out.publish([C1], NOON + 2 * MINUTE)
    require_right(out, [*FIRST, *SECOND_BATCH, C1])


def test_both_go_on_while_it_is_taken_and_the_processing_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the looks at the one's tables and the other's. Looked at later, it would know rows that are not there."""
    out = two_batches(tmp_path)
    real, kinds = snapshot.look, list[bool]()

    def look(root: str, name: str) -> Look | None:
        kinds.append(root.endswith("/process"))
        if len(set(kinds)) == 2 and kinds.count(kinds[-1]) == 1:
            out.publish([C1], NOON + 2 * MINUTE)
            killed_at("process-state", monkeypatch, out.processing().once)
        return real(root, name)

    monkeypatch.setattr(snapshot, "look", look)
    monkeypatch.setattr(processed, "look", look)
    taken = backup(out)
    assert len(set(kinds)) == 2
    assert taken.manifest.under_way == ()
    out.drain()
    back(out)
    assert [row["batch"] for row in out.rows("processed")] == [1]
    require_right(out, [*FIRST, *SECOND_BATCH, C1])


@in_full
def test_beside_a_processing_that_writes(tmp_path: Path) -> None:
    """Of each backup a batch is under way at most, and what it has published is what it has committed."""
    out = two_batches(tmp_path)
    stop, events, taken = threading.Event(), [*FIRST, *SECOND_BATCH], list[BackupResult]()

    def work() -> None:
        while not stop.is_set():
            events.append((f"w{out.batch}", "shoes", NOON + (60 + out.batch) * SECOND))
            out.publish(events[-1:], NOON + (60 + out.batch) * SECOND)
            out.drain()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        while len(taken) < 3:
            taken.append(take(out.pipeline, out.file.parent / "backups", print, wait=60))
    finally:
        stop.set()
        worker.join()
    back(out)
    held = {row["event_id"] for row in out.table().to_pyarrow_table(columns=["event_id"]).to_pylist()}
    require_right(out, [event for event in events if event[0] in held])


@pytest.mark.parametrize("point", some(["process-planned", ""], 2))
def test_files_that_have_left_the_output_and_are_not_read_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Rows that the processing has planned, or will plan, lie in files that no version of the cut names any more."""
    out = two_batches(tmp_path)
    if point:
        killed_at(point, monkeypatch, out.processing().once)
    out.publish([C1], NOON + MINUTE)
    out.table().optimize.compact()
    out.table().create_checkpoint()
    out.publish([D1], NOON + 2 * MINUTE)
    backup(out)
    shutil.rmtree(out.pipeline.root)  # so that nothing is found in it
    back(out)
    require_right(out, [*FIRST, *SECOND_BATCH, C1, D1])


@pytest.mark.parametrize("more", some([True, False], 2))
def test_a_first_reading_that_was_under_way_where_the_log_begins_with_its_version(tmp_path: Path, more: bool) -> None:
    """It reads all files of one version, which the log reaches by one checkpoint alone."""
    out = Output(tmp_path, batch={"max_events": 2})
    out.publish(FIRST, NOON)
    out.publish(SECOND_BATCH, NOON + MINUTE)
    out.table().create_checkpoint()
    log = tmp_path / "lake/shop/deduplicated/_delta_log"
    for file in sorted(log.glob("*.json"))[:-1]:
        file.unlink()
    out.processing().once()
    if more:
        out.publish([C1], NOON + 2 * MINUTE)
        out.table().create_checkpoint()
    backup(out)
    back(out)
    require_right(out, [*FIRST, *SECOND_BATCH, *([C1] if more else [])])


def test_a_file_is_collected_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = two_batches(tmp_path)
    out.drain()
    real, times = takes._Copier.all, []

    def all_(self: takes._Copier, wanted: Any) -> Any:
        if not times:
            tables = out.processing().tables
            tables.open("processed").optimize.compact()
            vacuum(tables, "processed", Needed(time.time() + 2 * 86400))
        times.append(1)
        return real(self, wanted)

    monkeypatch.setattr(takes._Copier, "all", all_)
    backup(out)
    assert len(times) == 2
    back(out)
    require_right(out, [*FIRST, *SECOND_BATCH])


def _as_before(monkeypatch: pytest.MonkeyPatch, out: Output) -> None:
    """A backup by a version that knew nothing of the processing's tables."""
    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "process_looks", lambda root: {})
        assert not [path for path in backup(out).manifest.files if path.startswith("process/")]


def test_a_backup_without_these_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = two_batches(tmp_path)
    out.drain()
    _as_before(monkeypatch, out)
    done = back(out)
    assert not Path(out.pipeline.root, "process").exists()
    assert Path(str(done.aside), "process/state").is_dir()
    require_right(out, [*FIRST, *SECOND_BATCH])


def test_an_output_that_is_older_than_what_was_counted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was joined since comes again, and would be counted again: tables of the lake before are not put back."""
    out = two_batches(tmp_path)
    _as_before(monkeypatch, out)
    out.publish([C1], NOON + MINUTE)
    out.drain()
    done = back(out)
    shutil.copytree(f"{done.aside}/process", f"{out.pipeline.root}/process")
    out.publish([C1], NOON + MINUTE)
    with pytest.raises(LakeError, match=r"not what lies there now: .* taken back by a restore.*process --rebuild"):
        out.drain()


@in_full
def test_a_lake_that_is_refused_is_no_less_so_once_restored(tmp_path: Path) -> None:
    """The output alone was put back from a copy; the backup holds both as they are."""
    out = two_batches(tmp_path)
    folder = tmp_path / "lake/shop/deduplicated"
    shutil.copytree(folder, tmp_path / "copy")
    out.publish([C1], NOON + MINUTE)
    out.drain()
    shutil.rmtree(folder)
    (tmp_path / "copy").rename(folder)
    backup(out)
    back(out)
    out.publish([C1], NOON + MINUTE)
    with pytest.raises(LakeError, match=r"process --rebuild"):
        out.drain()


def test_who_worked_before_commits_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = two_batches(tmp_path)
    backup(out)
    old = out.processing()
    old.once()
    back(out)
    out.publish([C1], NOON + 2 * MINUTE)
    with pytest.raises(LakeReplaced):
        old.once()
    require_right(out, [*FIRST, *SECOND_BATCH, C1])


def test_a_processing_at_work_is_not_restored_over(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    backup(out)
    for file in Path(out.pipeline.root).rglob("*.json"):
        if "process" not in file.relative_to(out.pipeline.root).parts:
            os.utime(file, (0, 0))
    with pytest.raises(BatchError, match=r"process/journal: was committed to .* Stop every run, drain, process"):
        back(out, force=False)


def test_a_table_that_is_lost(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    shutil.rmtree(Path(out.pipeline.root, "process/signals"))
    with pytest.raises(LakeError, match="process/signals: the table is missing"):
        backup(out)
