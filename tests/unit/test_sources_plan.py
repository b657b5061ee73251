"""Planning: what a glob finds, how a budget is kept, and what a plan costs."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from clickjoin.config import Files
from clickjoin.model.split import Budget
from clickjoin.sources.files.allowed_folders import base_of
from clickjoin.sources.files.line_end import cut
from clickjoin.sources.files.listing import list_files
from clickjoin.sources.files.source import FilesSource
from tests.unit.sources_bench import PLENTY, Feed, age, events, numbers


def names(folder: Path, pattern: str) -> list[str]:
    """What a glob matches below a folder."""
    found = list_files(f"{folder}/{pattern}").files
    return [file.path.removeprefix(f"{folder}/") for file in found if file.matched]


def test_globs(tmp_path: Path) -> None:
    for name in ("a.log", "b.txt", ".hidden.log", "x/a.log", "x/y/b.log", "x/y/.h/c.log", "z/1.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("\n")
    os.mkfifo(tmp_path / "pipe.log")
    assert names(tmp_path, "*.log") == ["a.log"]
    assert names(tmp_path, "**/*.log") == ["a.log", "x/a.log", "x/y/b.log", "z/1.log"]
    assert names(tmp_path, "x/**") == ["x/a.log", "x/y/b.log"]
    assert names(tmp_path, "*/?.log") == ["x/a.log", "z/1.log"]
    assert names(tmp_path, "[xz]/[0-9].log") == ["z/1.log"]
    assert names(tmp_path, "x/y/b.log") == ["x/y/b.log"]
    assert names(tmp_path, ".h*") == [".hidden.log"]
    assert base_of("/a/b*/c/*.log") == ("/a", ("b*", "c", "*.log"))
    assert base_of("/*.log") == ("/", ("*.log",))


def test_budget_by_events_is_exact(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    for name in "abc":
        (tmp_path / f"{name}.jsonl").write_bytes(events(0, 1000))
    left = 3000
    while left:
        plan = feed.plan(Budget(70, 1 << 30))
        got = len(numbers(feed.read(plan.splits)))
        assert sum(piece.events for piece in plan.splits) == got
        assert 0 < got <= 70
        left -= got
        assert plan.backlog_events == pytest.approx(left, abs=9)
    assert feed.plan().splits == ()


def test_budget_by_bytes_and_oldest_first(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    size = len(events(0, 1000))
    for at, name in enumerate("cab"):
        (tmp_path / f"{name}.jsonl").write_bytes(events(0, 1000))
        age(tmp_path / f"{name}.jsonl", 20 - at)
    plan = feed.plan(Budget(10**6, size // 10))
    taken = {piece.path[-7]: piece.payload["end"] - piece.payload["start"] for piece in plan.splits}
    assert list(taken) == ["c", "a", "b"]
    assert sum(taken.values()) <= size // 10
    assert min(taken.values()) > size // 40
    assert plan.backlog_bytes == 3 * size - sum(taken.values())


def test_a_backlog_is_read_file_by_file_and_a_file_that_grows_beside_it(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    size = len(events(0, 1000))
    for at, name in enumerate("cabd"):
        (tmp_path / f"{name}.jsonl").write_bytes(events(0, 1000))
        if name != "d":
            age(tmp_path / f"{name}.jsonl", 4000 - 1000 * at)
    batches = []
    while (plan := feed.plan(Budget(10**6, size // 2))).splits:
        batches.append("".join(piece.path[-7] for piece in plan.splits))
    assert [batch.startswith("d") for batch in batches[:5]] == [True] * 4 + [False]  # it is sure of a half
    old = "".join(batches).replace("d", "")
    assert old == "".join(sorted(old, key="cab".index))
    assert set(old) == set("cab")


def test_a_file_without_a_line_to_give_keeps_no_other_waiting(tmp_path: Path) -> None:
    feed, budget = Feed(tmp_path), Budget(50, 10**6)
    (tmp_path / "k.jsonl").write_bytes(events(0, 1000))
    age(tmp_path / "k.jsonl", 3500)
    assert len(feed.step(budget)) > 40
    (tmp_path / "k.jsonl").write_bytes(events(0, 1100))  # half read, and written to for longer than the other
    age(tmp_path / "k.jsonl", 1000)
    (tmp_path / "j.jsonl").write_bytes(b"\0" * 2 * 10**6)  # what a loss of power leaves
    age(tmp_path / "j.jsonl", 3000)
    plan = feed.plan(budget)
    assert [piece.path[-7] for piece in plan.splits] == ["k"]
    assert sum(piece.events for piece in plan.splits) > 40
    assert [(problem.kind, problem.path[-7]) for problem in plan.problems] == [("unfinished-line", "j")]


def test_one_record_is_taken_even_if_it_is_longer_than_the_budget(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    (tmp_path / "a.jsonl").write_bytes(b"x" * 5000 + b"\n" + events(0, 5))
    plan = feed.plan(Budget(1, 100))
    assert [(piece.payload["start"], piece.payload["end"]) for piece in plan.splits] == [(0, 5001)]
    assert feed.step(Budget(10, 100)) == [0, 1, 2]


def test_line_longer_than_a_block_is_cut_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a\n" + b"x" * 200_000 + b"\nb\nrest")
    fd = os.open(path, os.O_RDONLY)
    size = path.stat().st_size
    assert cut(fd, 0, size, size, None, True, closed=False) == (size - 4, None, False)
    assert cut(fd, 0, size, 100_000, None, False, closed=False) == (2, None, True)
    assert cut(fd, 2, size, 100_000, None, False, closed=False) == (2, 0, True)
    assert cut(fd, 2, size, 100_000, None, True, closed=False) == (200_003, 1, True)
    assert cut(fd, 0, size, size, 2, True, closed=False) == (200_003, 2, True)
    assert cut(fd, 0, size, size, 9, True, closed=False) == (200_005, 3, False)
    assert cut(fd, 200_005, size, 9, None, True, closed=False) == (200_005, 0, False)
    assert cut(fd, 200_005, size, 9, None, True, closed=True) == (size, None, False)
    assert cut(fd, 0, size, size, 3, True, closed=True) == (200_005, 3, True)
    assert cut(fd, 0, size, size, 9, True, closed=True) == (size, 4, False)
    assert cut(fd, 200_005, size, 1, None, True, closed=True) == (size, 1, False)
    os.close(fd)


class Counter:
    """Counts what planning opens and reads."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.opened = self.bytes = 0
        real_open, real_read = os.open, os.pread

        def count_open(*args: object, **fields: object) -> int:
            self.opened += 1
            return real_open(*args, **fields)  # type: ignore[arg-type]

        def count_read(fd: int, length: int, offset: int) -> bytes:
            data = real_read(fd, length, offset)
            self.bytes += len(data)
            return data

        patch.setattr(os, "open", count_open)
        patch.setattr(os, "pread", count_read)


def test_ten_thousand_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Feed(tmp_path)
    for at in range(10_000):
        (tmp_path / f"{at}.jsonl").write_bytes(events(at, at + 3))
    with monkeypatch.context() as patch:
        count = Counter(patch)
        start = time.perf_counter()
        plan = feed.source.plan({}, PLENTY)
        cold, opened = time.perf_counter() - start, count.opened
        known = {position.partition: position for position in plan.offsets}
        start = time.perf_counter()
        again = feed.source.plan(known, PLENTY)
        warm = time.perf_counter() - start
    print(f"10,000 files: cold {cold:.2f} s, unchanged {warm:.2f} s")
    assert len(plan.splits) == 10_000
    assert (again.splits, again.offsets) == ((), ())
    assert opened <= 20_000
    assert count.opened == opened
    assert count.bytes < 10_000 * 2000


def test_five_gigabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Feed(tmp_path)
    size, path = 5 * 10**9, tmp_path / "a.jsonl"
    path.write_bytes(events(0, 20_000))
    with path.open("r+b") as file:  # sparse, with lines wherever a slice of 256 MB may end
        for end in (256_000_000, size):
            file.seek(end - len(events(0, 100)))
            file.write(events(0, 100))
    with monkeypatch.context() as patch:
        count = Counter(patch)
        start = time.perf_counter()
        look = FilesSource(Files(kind="files", path=f"{tmp_path}/*.jsonl"), keep=False)
        assert [piece.payload["end"] for piece in look.plan({}, Budget(10**8, 256_000_000)).splits] == [256_000_000]
        looked, seconds = count.bytes, time.perf_counter() - start
        plan = feed.source.plan({}, Budget(10**8, 256_000_000))
    print(f"5 GB: {seconds:.3f} s, {looked} bytes read to look at it, {count.bytes - looked} to plan a batch")
    (piece,) = plan.splits
    assert (piece.payload["start"], piece.payload["end"]) == (0, 256_000_000)
    assert plan.backlog_bytes == size - 256_000_000
    assert looked < 1_000_000
    assert count.bytes - looked < 256_000_000 + 1_000_000  # what is taken is digested, and nothing is read twice
