"""Planning of objects: which lists are asked for, what is taken, what the journal keeps. No store, no clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.kernel.remote_file import Held
from clickjoin.model.split import Budget, SourceOffset
from clickjoin.sources.s3 import planning
from clickjoin.sources.s3.bucket import Page, StoredObject
from clickjoin.sources.s3.listing import Glob, is_before, look
from clickjoin.sources.s3.planning import Kinds, Reads, take
from clickjoin.sources.s3.state import PAGE, Cursor, Ledger, ObjectSplit, Part

NOW = 1_800_000_000
DAY = 86400


class Keys:
    """Answers lists of some keys as S3 documents them, 1,000 names at a time; `asked`: the prefixes."""

    def __init__(self, keys: list[str]) -> None:
        self.keys, self.asked = sorted(keys), list[str]()

    def pages(self, prefix: str, delimiter: str = "", after: str = "") -> Iterator[Page]:
        """See Lists."""
        keys = [key for key in self.keys if key.startswith(prefix) and key > after]
        names = list(dict.fromkeys(self._name(key, prefix, delimiter) for key in keys))
        for at in range(0, max(len(names), 1), 1000):
            self.asked.append(prefix)
            some = names[at : at + 1000]
            folders = [name for name in some if delimiter and name.endswith(delimiter)]
            yield Page([found(name) for name in some if name not in folders], folders, NOW)

    @staticmethod
    def _name(key: str, prefix: str, delimiter: str) -> str:
        head, mark, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key[len(prefix) :], "", "")
        return prefix + head + mark


def found(key: str, written: int = NOW, size: int = 10, etag: str = '"e"') -> StoredObject:
    return StoredObject(key, etag, size, written)


def every(_: StoredObject) -> bool:
    return True


KEYS = ["a/dt=2026-01-01/x.gz", "a/dt=2026-03-01/x.gz", "a/dt=2026-03-01/.h.gz", "a/dt=2026-03-01/y.csv",
        "a/dt=2026-03-01/deep/x.gz", "a/other/x.gz", "b/x.gz", "a/x.gz"]  # fmt: skip


@pytest.mark.parametrize(
    ("glob", "keys"),
    [
        ("a/dt=*/*.gz", [KEYS[0], KEYS[1]]),
        ("a/*/*.gz", [KEYS[0], KEYS[1], KEYS[5]]),
        ("a/**/*.gz", [KEYS[0], KEYS[1], KEYS[4], KEYS[5], KEYS[7]]),
        ("a/dt=2026-03-0[1-3]/x*", [KEYS[1]]),
        ("*/x.gz", [KEYS[6], KEYS[7]]),
        ("b/x.gz", [KEYS[6]]),
        ("c/*", []),
    ],
)
def test_globs_name_what_a_shell_would(glob: str, keys: list[str]) -> None:
    whole = Glob.of(glob)
    assert sorted(look(Keys(KEYS), whole, every).objects) == sorted(keys)
    assert sorted(key for key in KEYS if whole.names(key)) == sorted(keys)


def test_old_folders_are_not_listed() -> None:
    keys = [f"logs/dt={year}-{month:02}-01/{n}" for year in (2024, 2025) for month in range(1, 13) for n in range(3)]
    bucket = Keys(keys)
    seen = look(bucket, Glob.of("logs/dt=*/*"), every, date(2025, 11, 15))
    assert bucket.asked == ["logs/dt=", "logs/dt=2025-12-01/"]
    assert seen.requests == 2
    assert sorted(seen.objects) == [f"logs/dt=2025-12-01/{n}" for n in range(3)]


@pytest.mark.parametrize(
    ("folder", "before"),
    [
        ("dt=2026-03-01/", True), ("dt=2026-03-02/", False), ("20260301/", True), ("2026/03/01/", True),
        ("2026/03/", False), ("2026/02/", True), ("year=2026/month=03/day=01/hour=23/", True), ("year=2025/", True),
        ("year=2026/", False), ("host-12/", False), ("v2/", False), ("part-20991231235959/", False),
    ],
)  # fmt: skip
def test_dates_in_folders(folder: str, before: bool) -> None:
    assert is_before(folder, date(2026, 3, 2)) is before


def test_old_keys_however_many_are_two_lists_and_no_memory() -> None:
    bucket = Keys([f"c/dt=2020-01-{n % 28 + 1:02}/{n}" for n in range(20_000)] + ["c/dt=2026-03-01/x"])
    assert list(look(bucket, Glob.of("c/dt=*/*"), every, date(2026, 2, 27)).objects) == ["c/dt=2026-03-01/x"]
    assert len(bucket.asked) == 2


def reads(content: bytes = b"") -> Reads:
    return Reads("bucket", lambda path: None, lambda one: Held(content))


def test_the_oldest_go_first_and_what_does_not_fit_waits() -> None:
    objects = [found(f"k{n}", NOW - n, 100) for n in range(10)]
    taken = take([], objects, Budget(10**9, 350), Kinds(), reads(b"x" * 9 + b"\n"))
    assert [split.key for split in taken.splits] == ["k9", "k8", "k7"]
    assert {one.key for one in taken.left} == {f"k{n}" for n in range(7)}
    assert (taken.backlog_bytes, round(taken.backlog_events)) == (700, 70)
    assert [split.key for split in take([], objects, Budget(1, 1), Kinds(), reads(b"x\n")).splits] == ["k9"]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.integers(1, 300), st.booleans())
def test_parts_of_an_object_tile_it(lengths: list[int], room: int, ended: bool) -> None:
    """Whatever the budget: each part ends where a line does, and all of it is read once."""
    content = b"".join(b"x" * (length - 1) + b"\n" for length in lengths) + (b"" if ended else b"tail")
    whole = found("k", size=len(content))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "LEAST_CUT", 0)
        parts, kinds, ends = [Part(whole)], Kinds(), [0]
        while parts:
            taken = take(parts, [], Budget(10**9, room), kinds, reads(content))
            (split,) = taken.splits
            assert (split.start, taken.left) == (ends[-1], [])
            ends.append(split.end)
            parts = taken.parts
    assert ends[-1] == len(content)
    assert all(content[end - 1 : end] == b"\n" for end in ends[1:-1])
    assert all(low < high for low, high in pairwise(ends))


def grown(ledger: Ledger, offsets: list[SourceOffset]) -> Ledger:
    return Ledger({**ledger.offsets, **{offset.partition: offset for offset in offsets}})


def test_what_the_journal_keeps_does_not_grow_with_history() -> None:
    """A hundred objects an hour for a month, forgotten after two days: known all the same, and few are kept."""
    ledger, objects = Ledger({}), list[StoredObject]()
    for hour in range(30 * 24):
        fresh = [found(f"k{hour}-{n}", NOW + hour * 3600 + n) for n in range(100)]
        objects += fresh
        cursor = Cursor(horizon=NOW + hour * 3600 - 2 * DAY, forgotten=ledger.cursor.forgotten)
        ledger = grown(ledger, ledger.after("b", fresh, cursor))
    assert all(ledger.knows(one, "b") for one in objects)
    assert not ledger.knows(found("new", NOW + 30 * DAY), "b")
    assert len(ledger.ids) <= 100 * 49 + PAGE
    assert len(ledger.ids) + ledger.cursor.forgotten == len(objects)
    assert len(ledger.offsets) < 20


def test_the_same_key_written_again_is_another_object() -> None:
    one = found("k")
    ledger = grown(Ledger({}), Ledger({}).after("b", [one], Cursor()))
    assert ledger.knows(one, "b")
    assert not any(ledger.knows(other, "b") for other in (found("k", etag='"f"'), found("k", NOW + 1)))
    assert not ledger.knows(one, "another")


def test_offsets_and_splits_are_plain_data() -> None:
    cursor = Cursor(1, 2, 3, 4, 5, (Part(found("k"), 7),), {"a/": "a/k"})
    assert Cursor.of(cursor.to_offset()) == cursor
    split = ObjectSplit("p", "s3://b/k", "k", '"e"', NOW, 10, 0, -1, 3, 40)
    assert ObjectSplit.of(split.to_split()) == split
