"""Something else than a file lies where a planned log lay: nothing waits for it; its bytes are lost, not the batch."""

from __future__ import annotations

import errno
import gzip
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clickjoin.config import Files
from clickjoin.kernel import file_bytes
from clickjoin.kernel.file_bytes import AllowedFolders, opened
from clickjoin.kernel.read_lines import read_chunk
from clickjoin.model.errors import SourceError, SourceMoved
from clickjoin.model.split import LastRecord
from clickjoin.sources.files.locate import resume
from clickjoin.sources.open import header_of
from tests.unit.sources_bench import BASE, PLENTY, Feed, append, event, events, numbers, spec


def _link_to_fifo(path: Path) -> None:
    fifo = path.with_name("fifo")
    os.mkfifo(fifo)
    path.symlink_to(fifo)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))  # an address has room for about 100 characters


def _loop(path: Path) -> None:
    path.with_name("round").symlink_to(path)
    path.symlink_to(path.with_name("round"))


KINDS: dict[str, Callable[[Path], None]] = {
    "fifo": os.mkfifo,
    "link to a fifo": _link_to_fifo,
    "folder": Path.mkdir,
    "link to a folder": lambda path: path.symlink_to(path.parent),
    "loop": _loop,
    "socket": _socket,
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.fixture(autouse=True)
def no_waiting() -> Iterator[None]:
    """A test that waits fails, instead of holding up all others."""

    def end(*_: object) -> None:
        raise AssertionError("it waits for somebody to write")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(params=KINDS)
def put(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    """Puts something in the place of a file."""

    def do(path: Path) -> None:
        path.unlink(missing_ok=True)
        KINDS[request.param](path)

    return do


@pytest.mark.parametrize("packed", [False, True])
def test_its_slice_is_lost_and_others_are_read(
    feed: Feed, log: Path, tmp_path: Path, put: Callable[[Path], None], packed: bool
) -> None:
    if packed:
        log = log.with_name("a.jsonl.gz")
        log.write_bytes(gzip.compress(events(0, 40)))
        feed.ahead = 60
    else:
        append(log, events(0, 40))
    append(tmp_path / "b.jsonl", events(40, 50))
    splits = feed.plan().splits
    (gone,) = (piece for piece in splits if piece.path == str(log))
    put(log)
    assert list(feed.source.lost(splits)) == [gone.partition]
    rows = feed.read(splits)
    assert numbers(rows) == list(range(40, 50))
    assert [row["reason"] for row in rows if row["reason"]] == ["source-lost"]
    feed.plan()  # and those that come go on
    append(tmp_path / "b.jsonl", events(50, 60))
    assert feed.step() == list(range(50, 60))


def test_its_bytes_are_found_elsewhere(feed: Feed, log: Path, put: Callable[[Path], None]) -> None:
    append(log, events(0, 40))
    splits = feed.plan().splits
    log.rename(log.with_name("a.jsonl.1"))
    put(log)
    assert feed.source.lost(splits) == {}
    assert numbers(feed.read(splits)) == list(range(40))


def test_in_the_place_of_its_folder(tmp_path: Path, put: Callable[[Path], None]) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    feed = Feed(tmp_path, "*/*.jsonl")
    append(tmp_path / "one/a.jsonl", events(0, 40))
    append(tmp_path / "two/b.jsonl", events(40, 50))
    splits = feed.plan().splits
    (tmp_path / "one/a.jsonl").unlink()
    (tmp_path / "one").rmdir()
    put(tmp_path / "one")
    assert len(feed.source.lost(splits)) == 1
    assert numbers(feed.read(splits)) == list(range(40, 50))
    feed.plan()


def test_a_loop_in_the_place_of_the_globs_folder_tells_nothing(tmp_path: Path) -> None:
    """As a disk that is not mounted."""
    folder = tmp_path / "logs"
    folder.mkdir()
    feed = Feed(folder)
    append(folder / "a.jsonl", events(0, 40))
    splits = feed.plan().splits
    (folder / "a.jsonl").unlink()
    folder.rmdir()
    _loop(folder)
    with pytest.raises(SourceError, match="does not exist"):
        feed.source.lost(splits)


@pytest.mark.parametrize("fenced", [False, True])
def test_it_is_refused_and_closed(tmp_path: Path, log: Path, put: Callable[[Path], None], fenced: bool) -> None:
    put(log)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with (
            pytest.raises(FileNotFoundError),
            opened(str(log), AllowedFolders((str(tmp_path),), ()) if fenced else None),
        ):
            pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_put_there_after_it_was_listed(feed: Feed, log: Path, put: Callable[[Path], None]) -> None:
    """Whoever opens a file by a name that was right a moment ago."""
    append(log, events(0, 40))
    plan = feed.plan()
    (position,) = plan.offsets
    chunks = feed.source.chunks(plan.splits)
    last = LastRecord(position.partition, str(log), 0, len(events(0, 1)) - 1, f"h:1:{BASE}")
    assert resume(last)
    put(log)
    assert resume(last) is None
    assert not feed.source.rewritten([position])
    assert header_of(Files(kind="files", path=str(log), format="csv"), str(log)) == b""
    with pytest.raises(SourceMoved, match="is not where it was when the batch was planned"):
        list(read_chunk(chunks[0], spec()))


def test_what_may_not_be_read_any_more(feed: Feed, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rights were taken away between the plan and the reading: the error names the log."""
    append(log, events(0, 40))
    chunks = feed.source.chunks(feed.plan().splits)

    def refused(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(log))

    monkeypatch.setattr(file_bytes.os, "open", refused)
    with pytest.raises(SourceError, match=rf"{log.name}: may not be read any more \(Permission denied\)") as caught:
        list(read_chunk(chunks[0], spec()))
    assert caught.value.retryable


def test_a_plan_takes_nothing_of_it(feed: Feed, log: Path, put: Callable[[Path], None]) -> None:
    append(log, events(0, 40))
    feed.plan()
    put(log)
    assert feed.source.plan(feed.positions, PLENTY).splits == ()


@pytest.mark.parametrize("glob", ["*.jsonl", "t/*.jsonl", "t/*/*.jsonl", "t/dt=1/*.jsonl", "t/dt=1/h=*/*.jsonl"])
@pytest.mark.parametrize("mark", ["_delta_log", ".hoodie", "metadata/v1.metadata.json"])
def test_files_of_a_table_are_not_read(tmp_path: Path, glob: str, mark: str) -> None:
    """They hold rows too that it has removed. Files beside a table are read."""
    (tmp_path / "t/dt=1/h=2").mkdir(parents=True)
    (tmp_path / "t" / mark).mkdir(parents=True)
    for folder in ("", "t", "t/dt=1", "t/dt=1/h=2"):
        (tmp_path / folder / "a.jsonl").write_bytes(event(1))
    plan = Feed(tmp_path, glob).plan()
    if glob == "*.jsonl":
        assert len(plan.splits) == 1
    else:
        assert plan.splits == ()
        (problem,) = (problem for problem in plan.problems if problem.kind == "unreadable")
        assert (problem.path, "rows too that it has removed" in problem.detail) == (str(tmp_path / "t"), True)


@pytest.mark.parametrize("glob", ["t/*.jsonl", "t/data/*.jsonl", "**/*.jsonl"])
def test_a_folder_called_metadata_makes_no_table(tmp_path: Path, glob: str) -> None:
    for folder in ("t/data", "t/metadata"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "metadata.json").write_bytes(b"{}")
        (tmp_path / folder / "a.jsonl").write_bytes(event(1))
    (tmp_path / "t" / "a.jsonl").write_bytes(event(1))
    plan = Feed(tmp_path, glob).plan()
    assert plan.splits
    assert plan.problems == ()
