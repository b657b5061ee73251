"""Files whose ends are what they were, and whose middle is not: all that was read of a file is proven, not its ends."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from clickjoin.model.split import Budget
from clickjoin.sources.files import digests, listing, planning, proving
from clickjoin.sources.files.digests import LEAF
from clickjoin.sources.files.listing import LogFile
from tests.unit.sources_bench import BASE, Feed, age, append, event, events, numbers


def padded(low: int, high: int, pad: int = 1100) -> bytes:
    """Good lines that begin and end with the same `pad` bytes each."""
    line = b'{"ctx":"%s","id":"h:1:%d","ua":"%s"}\n'
    return b"".join(line % (b"c" * pad, BASE + number, b"u" * pad) for number in range(low, high))


def in_place(path: Path, data: bytes, at: int = 0) -> None:
    """Write over a file's bytes and set its time back."""
    stat = path.stat()
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_truncated_and_written_again_alike_at_both_ends(feed: Feed, log: Path) -> None:
    log.write_bytes(padded(0, 10))
    assert feed.step() == list(range(10))
    log.write_bytes(padded(10, 20))
    plan = feed.plan()
    assert numbers(feed.read(plan.splits)) == list(range(10, 20))
    assert [(problem.kind, problem.path, problem.length) for problem in plan.problems] == [
        ("rewritten", str(log), len(padded(0, 10)))
    ]
    append(log, padded(20, 22))
    assert feed.step() == [20, 21]
    assert feed.kinds() == []  # reported once


def test_other_file_of_the_same_shape_is_read_whole(feed: Feed, log: Path, tmp_path: Path) -> None:
    log.write_bytes(padded(0, 10))
    feed.step()
    aside = tmp_path / "elsewhere"
    aside.mkdir()
    log.rename(aside / "a")
    feed.step()
    (tmp_path / "b.jsonl").write_bytes(padded(10, 20))
    assert feed.step() == list(range(10, 20))


@pytest.mark.parametrize("reused", [True, False])
def test_next_day_of_the_same_shape_is_read_whole(feed: Feed, tmp_path: Path, reused: bool) -> None:
    one, two = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    one.write_bytes(padded(0, 10))
    feed.step()
    if reused:  # of a deleted file, a new one often gets the inode
        one.rename(two)
    else:
        one.rename(tmp_path.parent / f"{tmp_path.name}.away")
    two.write_bytes(padded(10, 25))
    assert feed.step() == list(range(10, 25))


def test_rewritten_in_place_with_its_time_kept(feed: Feed, log: Path) -> None:
    log.write_bytes(events(0, 50))
    age(log, 1000)
    feed.step()
    in_place(log, events(50, 100))
    plan = feed.plan()
    assert numbers(feed.read(plan.splits)) == list(range(50, 100))
    assert [problem.kind for problem in plan.problems] == ["rewritten"]


@pytest.mark.parametrize("grow", [0, 1])
def test_one_byte_in_the_middle_of_a_large_file(feed: Feed, log: Path, grow: int) -> None:
    log.write_bytes(padded(0, 500))
    feed.step()
    in_place(log, padded(900, 901), len(padded(0, 250)))
    append(log, padded(500, 500 + grow))
    assert feed.step() == [*range(250), 900, *range(251, 500 + grow)]


def test_large_file_that_grows_is_proven_once_it_rests(feed: Feed, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proving, "SPOT", 0)
    monkeypatch.setattr(proving.Prover.__init__, "__defaults__", (None, proving.WHOLE, 0))
    log.write_bytes(padded(0, 500))
    feed.step()
    in_place(log, padded(900, 901), len(padded(0, 250)))
    append(log, padded(500, 501))
    assert feed.step() == [500]
    feed.ahead = 30
    assert feed.step() == []
    feed.ahead = 100
    assert feed.step() == [*range(250), 900, *range(251, 501)]


def test_lot_finds_it_sooner_or_later(feed: Feed, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proving.Prover.__init__, "__defaults__", (None, proving.WHOLE, LEAF))
    feed.source._memory.lot = Random(1)
    log.write_bytes(padded(0, 500))
    feed.step()
    in_place(log, padded(900, 901), len(padded(0, 250)))
    for turn in range(500, 600):
        append(log, padded(turn, turn + 1))
        found = feed.step()
        if len(found) > 1:
            assert found == [*range(250), 900, *range(251, turn + 1)]
            return
    pytest.fail("never found")


def coarse(path: str, device: int, inode: int, size: int, mtime_ns: int, ctime_ns: int, matched: bool) -> LogFile:
    """A file as a file system shows it whose clock ticks once in an hour."""
    tick = 3600 * 10**9
    return LogFile(path, device, inode, size, mtime_ns // tick * tick, ctime_ns // tick * tick, matched)


def test_rewritten_within_a_tick_of_the_clock(feed: Feed, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proving, "FINE", 3700)
    monkeypatch.setattr(proving, "REST", 3700)
    monkeypatch.setattr(listing, "LogFile", coarse)
    log.write_bytes(padded(0, 10))
    feed.step()
    log.write_bytes(padded(10, 20))
    assert feed.step() == []  # nothing shows
    feed.ahead = 7300
    assert feed.step() == list(range(10, 20))


def test_new_metadata_are_no_new_file(feed: Feed, log: Path, tmp_path: Path) -> None:
    log.write_bytes(padded(0, 100))
    age(log, 1000)
    feed.step()
    for change in (lambda: log.chmod(0o600), lambda: (tmp_path / "b.jsonl").hardlink_to(log), lambda: log.chmod(0o644)):
        change()
        plan = feed.plan()
        assert (plan.splits, plan.offsets, plan.problems) == ((), (), ())


def read_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Lengths of what is read from now on."""
    done, real = [], os.pread

    def count(fd: int, length: int, at: int) -> bytes:
        data = real(fd, length, at)
        done.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", count)
    return done


def test_a_proof_is_made_once(feed: Feed, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write_bytes(padded(0, 1000))
    feed.step()
    feed.ahead = 100  # it was read young
    done = read_bytes(monkeypatch)
    assert feed.plan().offsets == ()
    assert len(padded(0, 1000)) <= sum(done) < 2 * len(padded(0, 1000))
    done.clear()
    assert (feed.plan().offsets, done) == ((), [])
    (log.with_name("b.jsonl")).write_bytes(event(1))
    plan = feed.plan()
    assert len(plan.offsets) == 2  # and written down with the next plan that has anything to say
    again = Feed(log.parent)
    again.positions, again.ahead = feed.positions, 100
    done.clear()
    again.plan()
    assert sum(done) < 10_000


def test_old_files_are_read_once_to_plan_them(feed: Feed, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write_bytes(padded(0, 2000))
    age(log, 1000)
    feed.ahead = 10
    done = read_bytes(monkeypatch)
    while feed.plan(Budget(10**6, 1 << 20)).splits:
        feed.ahead += 100
    assert sum(done) < 1.5 * len(padded(0, 2000))


def test_a_growing_log_is_not_read_over_and_over(feed: Feed, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proving.Prover.__init__, "__defaults__", (None, proving.WHOLE, LEAF))
    feed.source._memory.lot = Random(1)
    done = read_bytes(monkeypatch)
    for turn in range(100):
        append(log, padded(turn * 100, turn * 100 + 100))
        feed.plan()
        feed.ahead += 10
    assert sum(done) < 3 * log.stat().st_size
    (position,) = feed.positions.values()
    assert len(position.payload["prints"]) < 30 * 16


def test_chmod_of_many_large_files_is_proven_look_by_look(
    feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(padded(0, 100))
    for at in range(8):
        (tmp_path / f"{at}.jsonl").write_bytes(padded(at * 100, at * 100 + 100))
        age(tmp_path / f"{at}.jsonl", 1000)
    feed.ahead = 10
    feed.step()
    monkeypatch.setattr(proving, "WHOLE", 3 * size)
    monkeypatch.setattr(proving.Prover.__init__, "__defaults__", (None, 3 * size, 0))
    for at in range(8):
        (tmp_path / f"{at}.jsonl").chmod(0o600)
    in_place(tmp_path / "7.jsonl", padded(5000, 5001), len(padded(0, 50)))
    done, found = read_bytes(monkeypatch), []
    for _ in range(8):
        feed.ahead += 1000
        done.clear()
        found += feed.step()
        assert sum(done) < 8 * size
    assert found == [*range(700, 750), 5000, *range(751, 800)]


def test_planned_slice_is_not_read_from_a_file_of_the_same_shape(feed: Feed, log: Path, tmp_path: Path) -> None:
    log.write_bytes(padded(0, 10))
    splits = feed.plan().splits
    log.rename(tmp_path.parent / f"{tmp_path.name}.away")
    (tmp_path / "b.jsonl").write_bytes(padded(10, 20))
    assert list(feed.source.lost(splits)) == [splits[0].partition]
    assert [row["reason"] for row in feed.read(splits)] == ["source-lost"]
    shutil.copy(tmp_path.parent / f"{tmp_path.name}.away", tmp_path / "c.jsonl")
    assert numbers(feed.read(splits)) == list(range(10))


def test_position_set_back_goes_on_only_where_it_was(feed: Feed, log: Path) -> None:
    log.write_bytes(padded(0, 10))
    feed.step()
    append(log, padded(10, 20))
    lost = feed.plan().splits
    feed.give_back(lost)
    log.write_bytes(padded(30, 50))
    assert feed.step() == list(range(30, 50))


@pytest.mark.parametrize("known", [0, 30])
def test_replaced_between_the_look_and_the_cut(
    feed: Feed, log: Path, monkeypatch: pytest.MonkeyPatch, known: int
) -> None:
    log.write_bytes(events(0, known))
    feed.step()
    append(log, events(known, 60))
    real = planning.piece_of

    def late(*args: Any, **more: Any) -> Any:
        log.rename(log.with_name("a.jsonl.1"))
        log.write_bytes(events(100, 400))
        monkeypatch.setattr(planning, "piece_of", real)
        return real(*args, **more)

    monkeypatch.setattr(planning, "piece_of", late)
    assert feed.plan().splits == ()
    assert sorted(feed.step()) == [*range(known, 60), *range(100, 400)]


def test_disk_under_another_number(feed: Feed, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write_bytes(padded(0, 10))
    age(log, 1000)
    feed.ahead = 100
    feed.step()
    feed.positions = {
        name: replace(offset, payload=dict(offset.payload) | {"device": 99}) for name, offset in feed.positions.items()
    }
    done = read_bytes(monkeypatch)
    plan = feed.plan()
    assert (plan.splits, plan.offsets, done) == ((), (), [])


def test_packed_file_written_over_in_place(feed: Feed, tmp_path: Path) -> None:
    packed = tmp_path / "x.jsonl.gz"
    data = [_packed(low) for low in (0, 50)]
    assert len(data[0]) == len(data[1])
    packed.write_bytes(data[0])
    age(packed, 1000)
    assert feed.step() == list(range(50))
    packed.chmod(0o600)
    plan = feed.plan()
    assert (plan.splits, plan.offsets) == ((), ())
    in_place(packed, data[1])
    assert feed.step() == list(range(50, 100))


def _packed(low: int) -> bytes:
    import zlib

    pack = zlib.compressobj(0, zlib.DEFLATED, 31)
    return pack.compress(events(low, low + 50)) + pack.flush()


def test_sparse_and_constant_files(feed: Feed, log: Path, tmp_path: Path) -> None:
    constant = tmp_path / "b.jsonl"
    constant.write_bytes(event(1) * 20_000)
    with log.open("wb") as file:
        file.truncate(3 << 20)
    append(log, b"\n" + events(0, 10))
    assert sorted(set(feed.step())) == list(range(10))
    append(constant, event(1) * 10)
    assert feed.step() == [1] * 10
    in_place(log, events(50, 60), 1 << 20)
    assert feed.step()[-10:] == list(range(10))
    constant.write_bytes(event(1) * 20_010)  # nobody can tell, and nothing is lost
    assert feed.step() == []


@pytest.mark.parametrize("length", [0, 1, LEAF - 1, LEAF, LEAF + 1, 15 * LEAF, 16 * LEAF, 37 * LEAF + 5, 200 * LEAF])
def test_digests_do_not_depend_on_how_a_file_grew(length: int) -> None:
    data, lot = Random(length).randbytes(length), Random(1)
    whole = digests.prints_of([data], length)
    assert len(digests.blocks_of(whole, length)) == len(digests.layout(length)) <= 30
    known, at = "", 0
    while at < length:
        end = min(at + lot.randint(1, 30 * LEAF), length)
        known, at = digests.extended(known, at, [data[at - at % LEAF : end]], end) or "", end
    assert known == whole
