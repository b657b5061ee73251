"""Files that are rotated, copied, truncated and deleted: nothing is skipped, what is lost is reported."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pytest

from clickjoin.model.errors import SourceError
from clickjoin.model.split import Budget, LastRecord
from tests.unit.sources_bench import Feed, append, event, events, numbers, spec


def test_growing_file_is_read_once_in_slices(feed: Feed, log: Path) -> None:
    seen = []
    for low in range(0, 50, 10):
        append(log, events(low, low + 10))
        seen += feed.step()
    assert seen == list(range(50))
    assert len(feed.positions) == 1
    plan = feed.plan()
    assert (plan.splits, plan.offsets, plan.problems, plan.backlog_bytes) == ((), (), (), 0)


def test_rename_with_unread_tail_goes_on(feed: Feed, log: Path) -> None:
    append(log, events(0, 20))
    feed.step()
    append(log, events(20, 30))
    log.rename(log.with_name("a.jsonl.1"))
    append(log, events(30, 40))
    assert sorted(feed.step()) == list(range(20, 40))
    assert len(feed.positions) == 2


def test_rename_to_a_name_outside_the_glob_goes_on(tmp_path: Path, log: Path) -> None:
    feed = Feed(tmp_path, "*.jsonl")
    append(log, events(0, 20))
    feed.step()
    append(log, events(20, 30))
    log.rename(log.with_name("a.jsonl.1"))
    assert feed.step() == list(range(20, 30))
    append(log.with_name("a.jsonl.1"), events(30, 33))
    assert feed.step() == [30, 31, 32]


def test_rename_alone_changes_the_path_only(feed: Feed, log: Path) -> None:
    append(log, events(0, 20))
    feed.step()
    log.rename(log.with_name("b.jsonl"))
    plan = feed.plan()
    assert not plan.splits
    assert [position.payload["path"][-7:] for position in plan.offsets] == ["b.jsonl"]


@pytest.mark.parametrize("copy", ["a.jsonl.1", "copy.old"])
def test_copy_and_truncate_with_unread_tail_goes_on_in_the_copy(tmp_path: Path, log: Path, copy: str) -> None:
    feed = Feed(tmp_path, "*.jsonl*")
    append(log, events(0, 20))
    feed.step()
    append(log, events(20, 30))
    shutil.copy(log, tmp_path / copy)
    os.truncate(log, 0)
    append(log, events(30, 33))
    assert sorted(feed.step()) == list(range(20, 33))
    assert feed.kinds() == []


def test_truncated_without_a_copy_is_a_lost_tail(feed: Feed, log: Path) -> None:
    append(log, events(0, 20))
    half = feed.plan(Budget(10, 1 << 20))
    assert half.backlog_events > 0
    os.truncate(log, 0)
    append(log, events(30, 33))
    plan = feed.plan()
    assert numbers(feed.read(plan.splits)) == [30, 31, 32]
    (problem,) = plan.problems
    assert (problem.kind, problem.offset) == ("lost-tail", half.splits[0].payload["end"])
    assert problem.length == len(events(0, 20)) - half.splits[0].payload["end"]
    assert feed.kinds() == []  # reported once


def test_truncated_and_grown_beyond_the_offset_is_a_new_generation(feed: Feed, log: Path) -> None:
    append(log, events(0, 20))
    feed.step()
    os.truncate(log, 0)
    append(log, events(100, 150))
    assert feed.step() == list(range(100, 150))


def test_same_head_but_other_content_before_the_offset_is_a_new_generation(feed: Feed, log: Path) -> None:
    head = events(0, 60)
    append(log, head + events(60, 80))
    feed.step()
    os.truncate(log, len(head))
    append(log, events(200, 240))
    assert feed.step() == [*range(60), *range(200, 240)]


def test_deleted_with_unread_tail_is_reported_once_and_read_if_it_comes_back(
    feed: Feed, log: Path, tmp_path: Path
) -> None:
    append(log, events(0, 40))
    first = feed.step(Budget(10, 1 << 20))
    aside = tmp_path / "elsewhere"
    aside.mkdir()
    log.rename(aside / "a.jsonl")
    assert feed.kinds() == ["lost-tail"]
    assert feed.kinds() == []
    (aside / "a.jsonl").rename(log)
    assert first + feed.step() == list(range(40))


def test_comes_back_as_a_copy(feed: Feed, log: Path) -> None:
    append(log, events(0, 80))
    first = feed.step(Budget(40, 1 << 20))
    data = log.read_bytes()
    log.unlink()
    assert feed.kinds() == ["lost-tail"]
    (log.with_name("keep.tmp")).write_bytes(b"the inode is taken\n")
    log.write_bytes(data)
    assert sorted({*first, *feed.step()}) == list(range(80))


def test_deleted_and_read_is_quiet(feed: Feed, log: Path) -> None:
    append(log, events(0, 40))
    feed.step()
    log.unlink()
    assert feed.kinds() == []
    assert [position.payload["state"] for position in feed.positions.values()] == ["gone"]
    assert feed.plan().offsets == ()


def test_half_a_line_waits_and_is_reported_when_it_is_old(feed: Feed, log: Path) -> None:
    append(log, event(0) + event(1)[:20])
    assert feed.step() == [0]
    plan = feed.plan()
    assert (plan.splits, plan.problems, plan.backlog_bytes) == ((), (), 0)
    feed.ahead = 100
    (problem,) = feed.plan().problems
    assert (problem.kind, problem.offset, problem.length) == ("unfinished-line", len(event(0)), 20)
    append(log, event(1)[20:])
    assert feed.step() == [1]


@pytest.mark.parametrize(("tail", "seconds"), [(event(1)[:-1], 30), (event(1)[:20], 3700)])
def test_a_last_line_without_its_end_is_read_once_nobody_writes_the_file(
    feed: Feed, log: Path, tail: bytes, seconds: float
) -> None:
    append(log, event(0) + tail)
    assert feed.step() == [0]
    feed.ahead = seconds
    plan = feed.plan()
    ((start, end),) = [(split.payload["start"], split.payload["end"]) for split in plan.splits]
    assert (start, end, plan.problems) == (len(event(0)), len(event(0) + tail), ())
    rows = feed.read(plan.splits)
    assert [row["length"] for row in rows] == [len(tail)]
    append(log, b"\n" + event(2))
    assert feed.step() == [2]  # the line's end, which came after all, is no record


def test_half_a_line_that_is_deleted_is_a_lost_tail(feed: Feed, log: Path) -> None:
    append(log, event(0) + b'{"id"')
    feed.step()
    log.unlink()
    (problem,) = feed.plan().problems
    assert (problem.kind, problem.length) == ("lost-tail", 5)


def test_empty_file_is_nothing(feed: Feed, log: Path) -> None:
    log.touch()
    plan = feed.plan()
    assert (plan.splits, plan.offsets, plan.problems) == ((), (), ())


def test_two_files_with_one_head_are_two(feed: Feed, tmp_path: Path) -> None:
    head = events(0, 40)
    (tmp_path / "a.jsonl").write_bytes(head + events(100, 110))
    (tmp_path / "b.jsonl").write_bytes(head + events(200, 210))
    assert feed.step() == [*range(40), *range(100, 110), *range(40), *range(200, 210)]
    (tmp_path / "a.jsonl").unlink()
    append(tmp_path / "b.jsonl", events(210, 212))
    assert feed.step() == [210, 211]


def test_new_file_with_the_head_of_a_deleted_one_is_read_whole(feed: Feed, tmp_path: Path) -> None:
    head = events(0, 40)
    (tmp_path / "a.jsonl").write_bytes(head + events(100, 110))
    feed.step()
    (tmp_path / "b.jsonl").write_bytes(head + events(200, 230))
    (tmp_path / "a.jsonl").unlink()
    assert feed.step() == [*range(40), *range(200, 230)]


def test_tiny_file_is_no_proof(feed: Feed, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(event(0))
    feed.step()
    (tmp_path / "b.jsonl").write_bytes(event(0) + event(1))
    (tmp_path / "a.jsonl").unlink()
    assert feed.step() == [0, 1]
    assert feed.kinds() == []


def test_links_are_read_once(feed: Feed, log: Path, tmp_path: Path) -> None:
    append(log, events(0, 3))
    (tmp_path / "b.jsonl").hardlink_to(log)
    (tmp_path / "c.jsonl").symlink_to(log)
    assert feed.step() == [0, 1, 2]


def test_missing_folder_is_reported_and_changes_nothing(feed: Feed, log: Path, tmp_path: Path) -> None:
    append(log, events(0, 40))
    splits = feed.plan(Budget(10, 1 << 20)).splits
    first = numbers(feed.read(splits))
    tmp_path.rename(tmp_path.with_name("away"))
    plan = feed.plan()
    assert [problem.kind for problem in plan.problems] == ["missing"]
    assert plan.offsets == ()
    with pytest.raises(SourceError, match="does not exist"):
        feed.source.lost(splits)
    tmp_path.with_name("away").rename(tmp_path)
    assert first + feed.step() == list(range(40))


def test_no_matching_file_is_reported(feed: Feed) -> None:
    assert feed.kinds() == ["missing"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file_is_reported_and_others_go_on(feed: Feed, log: Path, tmp_path: Path) -> None:
    append(log, events(0, 3))
    (tmp_path / "b.jsonl").write_bytes(events(3, 5))
    log.chmod(0)
    plan = feed.plan()
    assert numbers(feed.read(plan.splits)) == [3, 4]
    assert [(problem.kind, problem.path) for problem in plan.problems] == [("unreadable", str(log))]
    log.chmod(0o600)
    assert feed.step() == [0, 1, 2]


def test_unreadable_file_by_errno(feed: Feed, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(log, events(0, 3))
    (tmp_path / "b.jsonl").write_bytes(events(3, 5))
    real = os.open

    def refuse(path: str, *args: int) -> int:
        if str(path) == str(log):
            raise PermissionError(13, "Permission denied", path)
        return real(path, *args)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        plan = feed.plan()
    assert numbers(feed.read(plan.splits)) == [3, 4]
    assert [(problem.kind, problem.path) for problem in plan.problems] == [("unreadable", str(log))]
    assert "Permission denied" in plan.problems[0].detail
    assert feed.step() == [0, 1, 2]


def test_lost_and_found_slices(feed: Feed, log: Path, tmp_path: Path) -> None:
    append(log, events(0, 40))
    splits = feed.plan().splits
    assert feed.source.lost(splits) == {}
    log.rename(tmp_path / "renamed.old")
    assert numbers(feed.read(splits)) == list(range(40))
    (tmp_path / "x.gz").write_bytes(gzip.compress(events(0, 50)))
    (tmp_path / "renamed.old").unlink()
    assert feed.source.lost(splits) == {}
    assert numbers(feed.read(splits)) == list(range(40))
    (tmp_path / "x.gz").unlink()
    assert list(feed.source.lost(splits)) == [splits[0].partition]
    (row,) = feed.read(splits)
    assert (row["reason"], row["offset"], row["length"], row["raw"]) == ("source-lost", 0, len(events(0, 40)), None)
    log.write_bytes(events(0, 40))
    assert feed.source.lost(splits) == {}


def test_position_set_back_by_the_journal_is_read_again(feed: Feed, log: Path) -> None:

    append(log, events(0, 20))
    feed.step()
    append(log, events(20, 40))
    lost = feed.plan().splits
    feed.give_back(lost)
    assert feed.step() == list(range(20, 40))


def test_rotation_chain_under_load(feed: Feed, log: Path, tmp_path: Path) -> None:
    seen: list[int] = []
    for turn in range(6):
        append(log, events(turn * 100, turn * 100 + 60))
        seen += feed.step()
        append(log, events(turn * 100 + 60, turn * 100 + 100))
        for old in range(5, 0, -1):
            if (tmp_path / f"a.jsonl.{old}").exists():
                (tmp_path / f"a.jsonl.{old}").rename(tmp_path / f"a.jsonl.{old + 1}")
        log.rename(tmp_path / "a.jsonl.1")
    seen += feed.step()
    assert sorted(seen) == list(range(600))
    assert feed.kinds() == []


@pytest.mark.parametrize("form", ["json", "csv"])
def test_after_a_record_that_has_landed(tmp_path: Path, form: str) -> None:
    """A journal that was lost goes on there; not in another log of its name."""
    feed, log = Feed(tmp_path, f"a.{form}*"), tmp_path / f"a.{form}"
    line = (b"%d,12\n" if form == "csv" else b'{"id":"%d","n":"12"}\n').__mod__
    header = b"id,n\n" if form == "csv" else b""
    log.write_bytes(header + b"".join(map(line, range(10, 13))))
    (position,) = feed.plan().offsets
    last = LastRecord(position.partition, str(log), len(header) + 2 * len(line(12)), len(line(12)), "12")
    own = spec(event_id="id", event_time="n")
    resumed = feed.source.resume(last, own)
    assert resumed
    assert resumed.payload["offset"] == log.stat().st_size
    log.rename(tmp_path / "b")
    log.write_bytes(header + b"".join(map(line, range(20, 60))))
    assert feed.source.resume(last, own) is None
