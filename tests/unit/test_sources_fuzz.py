"""Sources under whatever comes: any rotation loses nothing, and no line's fate hangs on its neighbours."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickjoin.model.split import Budget
from tests.unit.sources_bench import Feed, event, numbers

STEPS = st.sampled_from(["append", "append", "half", "rename", "copy", "gzip", "plan", "plan", "few"])


class Writer:
    """A log that grows and is rotated in all the usual ways: the newest rotated file is `.1`."""

    def __init__(self, folder: Path) -> None:
        self.log, self.written, self.begun = folder / "a.jsonl", 0, 0

    def append(self, count: int) -> None:
        data = b"".join(event(self.written + at) for at in range(count))
        self.write(data[self.begun :])
        self.written, self.begun = self.written + count, 0

    def begin(self) -> None:
        if not self.begun:
            self.begun = 9
            self.write(event(self.written)[:9])

    def write(self, data: bytes) -> None:
        with self.log.open("ab") as file:
            file.write(data)

    def shift(self) -> Path:
        found = sorted(self.log.parent.glob("a.jsonl.*"), key=lambda path: -int(path.name.split(".")[2]))
        for path in found:
            parts = path.name.split(".")
            path.rename(path.with_name(".".join([*parts[:2], str(int(parts[2]) + 1), *parts[3:]])))
        return self.log.with_name("a.jsonl.1")

    def rotate(self, how: str) -> None:
        if not self.log.exists():
            return
        self.append(2)
        first = self.shift()
        if how == "copy":
            shutil.copy(self.log, first)
            os.truncate(self.log, 0)
        else:
            self.log.rename(first)

    def pack(self) -> None:
        plain = [path for path in self.log.parent.glob("a.jsonl.*") if not path.name.endswith(".gz")]
        for path in sorted(plain)[:1]:
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=40), st.sampled_from(["*.jsonl", "*.jsonl*"]))
def test_any_rotation_loses_nothing(tmp_path_factory: pytest.TempPathFactory, steps: list[str], pattern: str) -> None:
    folder = tmp_path_factory.mktemp("any")
    feed, writer, seen = Feed(folder, pattern), Writer(folder), set[int]()
    reported: set[str] = set()

    def plan(events: int) -> None:
        plan = feed.plan(Budget(events, 1 << 20))
        reported.update(problem.kind for problem in plan.problems)
        seen.update(numbers(feed.read(plan.splits)))

    for step in [*steps, *["plan"] * 6]:
        if step in ("rename", "copy"):
            # What comes and goes between two plans is out of sight of a glob that does not cover its later names.
            if pattern == "*.jsonl":
                writer.append(1)
                plan(1000)
            writer.rotate(step)
        else:
            actions = {"append": lambda: writer.append(7), "half": writer.begin, "gzip": writer.pack}
            actions.get(step, lambda few=step == "few": plan(3 if few else 1000))()
    assert seen == set(range(writer.written))
    assert reported <= {"missing"}


LINES = [
    b'{"id":"h:1:1574562822000001","q":"x"}', b'{"id":12,"t":1574562822}', b'{"t":1574562822.5,"id":"b"}',
    b'{"id":"a","t":"2019-11-24T02:33:42Z","z":[1,{"b":null}]}', b'{"id":"c","t":1574562822123456789}',
    b'{"id":"d","t":1574562822,"x":NaN}', b'{"id":"d","t":1574562822,"x":Inf}', b'{"id":"h","t":9007199254740993}',
    b'{"id":"d","t":1574562822,"x":"\\ud800"}', b'{"id":"d","t":1574562822,"x":' + b"[" * 3000 + b"]" * 3000 + b"}",
    b'{"id":"e","t":1574562822}{"id":"f","t":1574562822}', b'{"id":"\\u0065","t":1574562822}', b'{"id":-0,"t":-0}',
    b'{"id":123456789012345678901234567890,"t":1e9}', b'{"id":"g","t":12345678901234567890}', b'{"i\\u0064":1,"t":"1"}',
]  # fmt: skip
edits = st.lists(
    st.tuples(
        st.integers(0, 80), st.integers(0, 2), st.sampled_from(b'{}[]",:\\ \t\r019.eE+-ntfI\xc3\xa9\xff\x00\x01')
    ),
    max_size=2,
)


def edited(line: bytes, changes: list[tuple[int, int, int]]) -> bytes:
    """A line with some bytes changed, removed or put in."""
    data = bytearray(line)
    for at, how, byte in changes:
        data[at : at + (how > 0)] = bytes([byte]) * (how < 2)
    return bytes(data)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(LINES), edits), min_size=1, max_size=25), st.sampled_from([300, 4096, 1 << 20])
)
def test_a_line_means_the_same_among_any_others(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[bytes, list[tuple[int, int, int]]]], size: int
) -> None:
    folder = tmp_path_factory.mktemp("any")
    lines = [edited(*pair) + b"\n" for pair in pairs]

    def read(data: bytes) -> list[tuple[Any, ...]]:
        (folder / "a.jsonl").write_bytes(data)
        feed = Feed(folder)
        names = ("event_id", "event_time", "reason", "payload", "raw")
        return [tuple(row[name] for name in names) for row in feed.read(feed.plan().splits, size=size, event_time="t")]

    assert read(b"".join(lines)) == [row for line in lines for row in read(line)]
