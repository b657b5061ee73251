"""Packed files: waited for while they are written, read whole or not, and found again after a rotation."""

from __future__ import annotations

import bz2
import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clickjoin.kernel.packed import unpack
from clickjoin.model.split import Budget
from tests.sampled import some
from tests.unit.sources_bench import Feed, age, append, event, events, numbers


def test_gzip_with_unread_tail_goes_on_in_it(feed: Feed, log: Path) -> None:
    append(log, events(0, 50))
    feed.step()
    append(log, events(50, 60))
    packed = log.with_name("a.jsonl.1.gz")
    packed.write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    assert feed.step() == list(range(50, 60))
    assert [position.payload["state"] for position in feed.positions.values()] == ["done"]
    plan = feed.plan()
    assert (plan.splits, plan.offsets) == ((), ())
    packed.rename(log.with_name("a.jsonl.2.gz"))
    assert feed.step() == []


def test_gzip_without_a_tail_needs_no_slice(tmp_path: Path, log: Path) -> None:
    feed = Feed(tmp_path, "*.jsonl")
    append(log, events(0, 50))
    feed.step()
    log.with_name("a.jsonl.1.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    plan = feed.plan()
    assert (plan.splits, plan.problems) == ((), ())
    assert [position.payload["state"] for position in feed.positions.values()] == ["done"]


def test_gzip_being_written_is_waited_for(feed: Feed, log: Path) -> None:
    append(log, events(0, 50))
    feed.step()
    append(log, events(50, 60))
    whole = gzip.compress(log.read_bytes())
    packed = log.with_name("a.jsonl.1.gz")
    packed.write_bytes(whole[:-20])
    log.unlink()
    plan = feed.plan()
    assert (plan.splits, plan.problems) == ((), ())
    assert plan.backlog_bytes > 0
    packed.write_bytes(whole)
    assert feed.step() == list(range(50, 60))


def test_new_gzip_is_read_whole_and_again_if_it_changes(feed: Feed, tmp_path: Path) -> None:
    packed = tmp_path / "x.jsonl.gz"
    packed.write_bytes(gzip.compress(events(0, 20)) + gzip.compress(events(20, 30)))
    plan = feed.plan()
    assert plan.splits[0].payload["end"] == -1
    assert numbers(feed.read(plan.splits, tasks=4, size=100)) == list(range(30))
    packed.write_bytes(gzip.compress(events(0, 40)))
    assert feed.step() == list(range(40))


def test_damaged_gzip_is_read_as_far_as_it_goes(feed: Feed, tmp_path: Path) -> None:
    packed = tmp_path / "x.jsonl.gz"
    packed.write_bytes(gzip.compress(events(0, 500))[:-100])
    age(packed, 60)
    rows = feed.read(feed.plan().splits)
    good = numbers(rows)
    assert good == list(range(len(good)))
    assert len(good) > 100
    assert [row["reason"] for row in rows if row["reason"]][-1] == "broken-file"


def test_gzip_that_cannot_be_unpacked_is_one_bad_record(feed: Feed, tmp_path: Path) -> None:
    packed, whole = tmp_path / "x.jsonl.gz", bytearray(gzip.compress(events(0, 300)))
    middle = len(whole) // 2
    whole[middle : middle + 40] = bytes(255 - byte for byte in whole[middle : middle + 40])
    whole[-4:] = b"\xff\xff\xff\xee"  # says that it unpacks to four billion bytes
    packed.write_bytes(whole)
    (tmp_path / "y.jsonl").write_bytes(events(0, 5))
    age(packed, 60)
    plan = feed.plan(Budget(100, 10**6))
    assert sum(piece.events for piece in plan.splits) < 100 * len(whole)
    rows = feed.read(plan.splits)
    assert numbers(rows) == list(range(5))
    found = [row for row in rows if row["reason"]]
    assert [(row["reason"], row["path"], row["offset"]) for row in found] == [("broken-file", str(packed), 0)]
    assert feed.plan().splits == ()


def test_plain_file_named_gz_is_plain(feed: Feed, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl.gz").write_bytes(events(0, 5))
    assert feed.step() == [0, 1, 2, 3, 4]
    append(tmp_path / "x.jsonl.gz", events(5, 7))
    assert feed.step() == [5, 6]


def test_half_a_line_in_a_rotated_gzip_is_read(feed: Feed, log: Path) -> None:
    append(log, events(0, 50) + event(50).rstrip())
    feed.step()
    log.with_name("a.jsonl.1.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    assert feed.step() == [50]


def test_lost_gzip_is_found_by_its_head(feed: Feed, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(events(0, 50)))
    splits = feed.plan().splits
    (tmp_path / "x.jsonl.gz").rename(tmp_path / "y.gz")
    assert numbers(feed.read(splits)) == list(range(50))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress], ids=["gz", "bz2"])
@pytest.mark.parametrize("zeros", [1, 100_000, 65_536 * 5])
def test_members_after_any_padding_are_read(
    feed: Feed, tmp_path: Path, pack: Callable[[bytes], bytes], zeros: int
) -> None:
    """A tape's block, or a disk's, is filled up with zeros: however many lie between two members."""
    packed = tmp_path / f"x.jsonl.{'gz' if pack is gzip.compress else 'bz2'}"
    packed.write_bytes(pack(events(0, 20)) + bytes(zeros) + pack(events(20, 30)) + bytes(zeros))
    assert feed.step() == list(range(30))


def peak_of(code: str, path: Path) -> tuple[int, int]:
    """What a child prints first, and its greatest memory in KB."""
    peak = "open('/proc/self/status').read().split('VmHWM:')[1].split()[0]"
    command = [sys.executable, "-c", f"import os, sys\n{code}\nprint({peak})", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    first, most = map(int, done.stdout.split())
    return first, most


def zstd(path: Path, *pieces: bytes) -> None:
    with pa.CompressedOutputStream(str(path), "zstd") as out:
        for piece in pieces:
            out.write(piece)


UNPACKED = """
from clickjoin.kernel.packed import BrokenFile, unpack
length = 0
try:
    for block in unpack(os.open(sys.argv[1], os.O_RDONLY)):
        length += len(block)
except BrokenFile:
    pass
print(length)
"""


def test_a_damaged_file_that_is_much_longer_than_packed_takes_little_memory(tmp_path: Path) -> None:
    """A child's greatest memory: the content is 400 MB, none of which is held."""
    path = tmp_path / "a.zst"
    zstd(path, *(b"0" * (1 << 20) for _ in range(400)))
    data = bytearray(path.read_bytes())
    data[-3:] = b"xyz"
    path.write_bytes(data)
    length, peak = peak_of(UNPACKED, path)
    assert length > 390 << 20
    assert peak < 250 << 10


@pytest.mark.parametrize("nested", some(["", "struct", "list", "map"], 2))
def test_a_dictionary_of_one_long_value_takes_little_memory(tmp_path: Path, nested: str) -> None:
    """It stands in each of 400 rows: 2 KB of Parquet are 800 MB of JSON."""
    ids, texts = [f"a{n}" for n in range(400)], pa.array(["x" * 2_000_000]).take(pa.array([0] * 400))
    column = {
        "": lambda: texts,
        "struct": lambda: pa.StructArray.from_arrays([texts], ["s"]),
        "list": lambda: pa.ListArray.from_arrays(pa.array(range(401), pa.int32()), texts),
        "map": lambda: pa.MapArray.from_arrays(pa.array(range(401), pa.int32()), pa.array(ids), texts),
    }[nested]()
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": ids, "v": column}), path, compression="zstd", dictionary_pagesize_limit=4 << 20)
    assert path.stat().st_size < 10_000
    length, peak = peak_of(UNPACKED, path)
    assert length > 800_000_000
    assert peak < (600 if nested else 400) << 10


@pytest.mark.parametrize("statistics", [False, True])
def test_a_page_that_is_much_longer_than_packed_is_refused_by_name(tmp_path: Path, statistics: bool) -> None:
    """PyArrow unpacks a page as a whole: 10 KB of Parquet took 2.5 GB."""
    path = tmp_path / "a.parquet"
    table = pa.table({"id": ["a", "b"], "v": ["y", "x" * (300 << 20)]})
    pq.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=statistics)
    said = "except BrokenFile as error:\n    length = int('column v has a page of' in str(error))"
    refused, peak = peak_of(UNPACKED.replace("except BrokenFile:\n    pass", said), path)
    assert refused == 1
    assert peak < 200 << 10


def test_rows_are_the_same_bytes_however_values_lie(tmp_path: Path) -> None:
    """Offsets are bytes: with dictionaries, nulls, groups of rows, and where a dictionary had grown too long."""
    rows = 9_000
    texts = [None if n % 7 == 0 else f"{'long' * 50}{n % 900}" for n in range(rows)]
    table = pa.table({"n": range(rows), "text": texts, "in": [{"text": text} for text in texts]})
    contents = []
    for kind, options in enumerate(({"use_dictionary": False}, {}, {"dictionary_pagesize_limit": 20_000})):
        path = tmp_path / f"{kind}.parquet"
        pq.write_table(table, path, row_group_size=4_000, **options)
        with path.open("rb") as file:
            contents.append(b"".join(unpack(file.fileno())))
    assert contents[0] == contents[1] == contents[2]
    assert contents[0].count(b"\n") == rows


LOOKED_AT = """
from clickjoin.config.streams import Files
from clickjoin.model.ids import RecordSpec
from clickjoin.model.split import Budget
from clickjoin.sources.files.source import FilesSource
spec = RecordSpec(("id",), "at", (), None, 0, 1 << 60, 16_000_000)
source = FilesSource(Files(kind="files", path=sys.argv[1]))
splits = source.plan({}, Budget(1000, 1 << 40)).splits
found = source.sample(splits, spec)
assert (found.read, found.good, found.bad[0].reason) == (2, 1, "too-long"), found
assert source.read_here(splits, spec) is None
print(len(splits))
"""


def test_a_line_that_is_much_longer_than_packed_takes_little_memory(tmp_path: Path) -> None:
    """It counts once, and this process leaves it to tasks, which write as they read."""
    path = tmp_path / "a.jsonl.zst"
    good = b'{"id": "a", "at": 5}\n'
    zstd(path, good, b'{"id": "b", "v": "', *(b"y" * (1 << 20) for _ in range(900)), b'"}\n', good)
    splits, peak = peak_of(LOOKED_AT, path)
    assert splits == 1
    assert peak < 900 << 10
