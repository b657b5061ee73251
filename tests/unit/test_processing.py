"""Per-key processing: each event is counted once and each signal reported once, whatever is killed or rewritten."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clickjoin.gc.behind import processing_behind
from clickjoin.gc.compaction import _say_behind, clean, needs
from clickjoin.jobs.processing import process
from clickjoin.lake.restored import leave_mark
from clickjoin.lake.vacuum import vacuum
from clickjoin.model import failpoint
from clickjoin.model.errors import LakeError, LakeReplaced
from clickjoin.model.ids import moment
from clickjoin.processing.check import check
from tests.unit.processing_bench import (
    FIRST,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    SECOND_BATCH,
    Event,
    Output,
    by_text,
    expected,
    killed_at,
    paused_at,
    through_kills,
    two_batches,
)  # fmt: skip

POINTS = failpoint.PROCESS_POINTS


def test_windows_are_counted_across_batches(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    out.drain()
    assert by_text(out.signals()) == expected([*FIRST, *SECOND_BATCH], NOON + MINUTE)
    out.publish([], NOON + 2 * MINUTE)  # only time passes
    (row,) = out.drain()
    assert (row["events"], row["signals"], row["keys"]) == (0, 1, 1)
    assert by_text(out.signals()) == expected([*FIRST, *SECOND_BATCH], NOON + 2 * MINUTE)
    assert out.drain() == []
    assert {row["id"] for row in out.rows("signals")} >= {"TumblingCounts/count/2024-10-04 12:00:00.000000/shoes"}


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_step_and_again_on_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    out = two_batches(tmp_path)
    out.publish([("late", "shoes", NOON - HOUR)], NOON + 2 * MINUTE)
    for _ in range(3):
        killed_at(point, monkeypatch, out.processing().once)
    out.drain()
    assert by_text(out.signals()) == expected([*FIRST, *SECOND_BATCH], NOON + 2 * MINUTE)
    assert [row["event_id"] for row in out.rows("late")] == ["late"]
    assert sum(row["events"] + row["late"] for row in out.rows("processed")) == 6


@pytest.mark.parametrize("point", POINTS)
def test_a_zombie_does_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    out = two_batches(tmp_path)

    def meanwhile() -> None:
        out.drain()
        out.publish([("c1", "shoes", NOON + 100 * SECOND), ("late", "hats", NOON)], NOON + 2 * MINUTE)
        out.drain()

    late = [("late", "hats", NOON - HOUR)] if point == "process-late" else []
    out.add(late)
    zombie = out.processing()
    paused_at(point, monkeypatch, zombie.once, meanwhile)
    zombie.drain(lambda _: None)
    events = [*FIRST, *SECOND_BATCH, ("c1", "shoes", NOON + 100 * SECOND)]
    assert by_text(out.signals()) == expected(events, NOON + 2 * MINUTE)
    assert len(out.rows("late")) == 1 + len(late)
    assert [row["batch"] for row in out.rows("processed")] == [1, 2, 3]


@pytest.mark.parametrize("point", [point for point in POINTS if point != "process-late"])
def test_what_a_batch_has_fixed_is_published_whatever_the_file_says_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """State is committed before anything is published: else what is out and what is remembered could differ."""
    out = two_batches(tmp_path)
    killed_at(point, monkeypatch, out.processing().once)
    fixed = point in POINTS[2:]
    out.write(args={"window": "1m", "min_count": 3})
    out.drain()
    three = [("shoes", "count", NOON, 3)]
    assert by_text(out.signals()) == (by_text([*three, ("hats", "count", NOON, 1)]) if fixed else three)
    said = [row["outbox"] is not None for row in out.rows("state") if row["what"] == "batch"]
    assert said[-1] is True


def test_events_behind_the_watermark_and_without_a_key_are_kept_whole(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    out.drain()
    out.publish([("x", "hats", NOON - SECOND), ("y", None, NOON + 90 * SECOND), ("z", "hats", NOON)], NOON + MINUTE)
    (row,) = out.drain()
    assert (row["events"], row["late"]) == (0, 3)
    found = [(row["event_id"], row["key"], row["reason"]) for row in out.rows("late")]
    assert found == [("x", "hats", "late"), ("y", None, "no-key"), ("z", "hats", "late")]
    assert check(out.pipeline).faults == ()


def test_rows_that_are_rewritten_are_no_new_events(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    out.drain()
    out.table().update(updates={"item": "'shoes'"}, predicate="event_id = 'a3'")
    out.table().optimize.compact()
    out.table().delete("event_id = 'a1'")
    out.publish([("c1", "shoes", NOON + 100 * SECOND)], NOON + 2 * MINUTE)
    rows = out.drain()
    assert sum(row["events"] for row in rows) == 1
    assert sum(row["known"] for row in rows) > 0
    events = [*FIRST, *SECOND_BATCH, ("c1", "shoes", NOON + 100 * SECOND)]
    assert by_text(out.signals()) == expected(events, NOON + 2 * MINUTE)


def test_an_id_that_comes_at_another_time_while_its_file_is_rewritten_is_another_event(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    out.drain()
    new = out.rows_of([("a3", "shoes", NOON + 5 * SECOND), ("a3", "hats", NOON + 80 * SECOND)])
    merge = out.table().merge(new, "t.event_id = s.event_id AND t.event_time = s.event_time", "s", "t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    out.publish([], NOON + 2 * MINUTE)
    rows = out.drain()
    assert sum(row["events"] for row in rows) == 1
    events = [*FIRST, *SECOND_BATCH, ("a3", "hats", NOON + 80 * SECOND)]
    assert by_text(out.signals()) == expected(events, NOON + 2 * MINUTE)


def test_an_output_that_was_put_back_is_refused_and_a_rebuild_says_the_same(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    out.drain()
    before = out.signals()
    folder, copy = Path(out.table().table_uri.removeprefix("file://")), tmp_path / "copy"
    shutil.copytree(folder, copy)
    out.add([("d1", "hats", NOON + 3 * MINUTE)])
    out.drain()
    shutil.rmtree(folder)
    copy.rename(folder)
    out.add([("e1", "hats", NOON + 4 * MINUTE)])
    with pytest.raises(LakeError, match=r"not what lies there now.*process --rebuild"):
        out.drain()
    said: list[str] = []
    process(None, out.pipeline, "", said.append, 0, rebuild=True)
    assert out.signals() == before
    assert len([line for line in said if "put-aside" in line]) == 5


def test_signals_that_another_program_has_put_back(tmp_path: Path) -> None:
    """Batches go on as if they were there: the next process refuses, too, until they are."""
    out = two_batches(tmp_path)
    out.drain()
    wanted = by_text(out.signals())
    table = DeltaTable(next(tmp_path.rglob("process/signals")))
    newest = table.version()
    table.restore(newest - 1)
    with pytest.raises(LakeError, match=rf"signals: its version {newest + 1} is a RESTORE .*process --rebuild"):
        out.drain()
    table.restore(newest)
    out.drain()
    assert by_text(out.signals()) == wanted


def test_a_process_from_before_a_rebuild_commits_no_more(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    old = out.processing()
    old.once()
    process(None, out.pipeline, "", lambda _: None, 0, rebuild=True)
    out.publish([("c1", "shoes", NOON + 100 * SECOND)], NOON + 2 * MINUTE)
    with pytest.raises(LakeReplaced):
        old.once()
    out.drain()
    assert by_text(out.signals()) == expected(
        [*FIRST, *SECOND_BATCH, ("c1", "shoes", NOON + 100 * SECOND)], NOON + 2 * MINUTE
    )


def test_a_process_from_before_a_restore_commits_no_more(tmp_path: Path) -> None:
    out = two_batches(tmp_path)
    old = out.processing()
    old.once()
    out.publish([("c1", "shoes", NOON + 100 * SECOND)], NOON + 2 * MINUTE)
    leave_mark(out.pipeline.root, "restore", moment(NOON))
    with pytest.raises(LakeReplaced):
        old.once()


@pytest.mark.parametrize("name", ["journal", "state", "signals"])
def test_an_older_or_lost_table_is_refused(tmp_path: Path, name: str) -> None:
    out = two_batches(tmp_path)
    folder = tmp_path / f"lake/shop/process/{name}"
    shutil.copytree(folder, tmp_path / "copy")
    out.drain()
    shutil.rmtree(folder)
    with pytest.raises(LakeError, match=rf"table {name} is missing"):
        out.drain()
    (tmp_path / "copy").rename(folder)
    out.publish([("c1", "shoes", NOON + 100 * SECOND)], NOON + 2 * MINUTE)
    with pytest.raises(LakeError, match="older"):
        out.drain()


def test_gc_keeps_what_processing_has_not_read(tmp_path: Path) -> None:
    """It was off for longer than retention.files, and the output was compacted meanwhile: it goes on where it was."""
    out = two_batches(tmp_path)
    out.drain()
    later: list[Event] = [(f"e{number}", "shoes", NOON + 2 * MINUTE + number) for number in range(3)]
    for event in later:
        out.publish([event], NOON + 2 * MINUTE)
    out.table().optimize.compact()
    much_later = time.time() + 10 * 86_400
    behind = processing_behind(out.pipeline)
    assert vacuum(out.delta, "joined", needs(out.pipeline, "joined", (), much_later, behind)) == []
    said: list[str] = []
    _say_behind(out.pipeline, out.delta, behind, much_later, said.append)
    assert [line.partition(" since ")[0] for line in said] == ["files that the output has had"]
    assert sum(row["events"] for row in out.drain()) == len(later)
    _say_behind(out.pipeline, out.delta, processing_behind(out.pipeline), much_later, said.append)
    assert len(said) == 1  # all is read
    assert len(vacuum(out.delta, "joined", needs(out.pipeline, "joined", (), much_later), dry_run=True)) >= len(later)


def test_gc_keeps_it_by_the_lakes_clock(tmp_path: Path) -> None:
    """Clocks of the hosts that wrote the output were two days ahead of the lake's: they say nothing of files' ages."""
    out = two_batches(tmp_path)
    out.drain()
    for number in range(3):
        out.publish([(f"e{number}", "shoes", NOON + 2 * MINUTE + number)], NOON + 2 * MINUTE)
    out.table().optimize.compact()
    for file in (tmp_path / "lake/shop/deduplicated").rglob("*.*"):
        os.utime(file, (file.stat().st_mtime - 2 * 86_400,) * 2)
    clean(out.pipeline, out.delta, print)
    assert sum(row["events"] for row in out.drain()) == 3


def test_all_keys_are_written_again_now_and_then_and_loaded_by_any_process(tmp_path: Path) -> None:
    out = Output(tmp_path)
    events: list[Event] = []
    for batch in range(6):
        new: list[Event] = [
            (f"{batch}-{key}", f"k{key}", NOON + batch * SECOND) for key in range(600) if (key + batch) % 3 or batch < 2
        ]
        events += new
        out.publish(new, NOON)
        out.drain()
    eras = {row["era"] for row in out.rows("state")}
    assert len(eras) == 1
    assert eras != {1}
    out.publish([], NOON + MINUTE)
    out.drain()
    assert by_text(out.signals()) == expected(events, NOON + MINUTE)
    assert out.drain() == []


def test_a_batch_that_fails_before_its_commit_is_worked_out_from_the_state_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = two_batches(tmp_path)
    same = out.processing()

    def no_room(*_: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("clickjoin.processing.processing.key_rows", no_room)
        with pytest.raises(MemoryError):
            same.once()
    same.drain(lambda _: None)
    assert by_text(out.signals()) == expected([*FIRST, *SECOND_BATCH], NOON + MINUTE)


EVENTS = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 300)), max_size=8)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(EVENTS, st.integers(0, 150), st.sampled_from(("", *POINTS))), min_size=1, max_size=5))
def test_it_equals_a_count_by_hand_whatever_is_killed(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, batches: list[Any]
) -> None:
    out = Output(tmp_path_factory.mktemp("lake"))
    taken, _, late, mark = through_kills(out, batches, 0, monkeypatch)
    assert by_text(out.signals()) == expected(taken, mark)
    assert len(out.rows("late")) == late
    found = check(out.pipeline)
    assert (found.events, found.late, found.faults, found.notes) == (len(taken), late, (), ())
