"""A log under whatever is done to it: what was in it at a look is read, or a problem names the file."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickjoin.model.split import Budget
from clickjoin.sources.files import digests
from tests.unit.sources_bench import BASE, Feed, append, numbers
from tests.unit.test_sources_rewritten import in_place, padded

_ID = re.compile(rb'"h:1:(\d+)"[^\n]*\n')


class Log:
    """A log whose records are alike for a kilobyte at both ends; each that is ever written has a number of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "a.jsonl"
        self.written = self.turned = 0
        self.log.touch()

    def some(self, count: int) -> bytes:
        self.written += count
        return padded(self.written - count, self.written)

    def append(self, count: int) -> None:
        append(self.log, self.some(count))

    def rewrite(self, more: int) -> None:
        """Truncate it, and write as many records as there were, and more."""
        self.log.write_bytes(self.some(self.log.stat().st_size // len(padded(0, 1)) + more))

    def over(self, at: int) -> None:
        """Write over some of its records, and set its time back."""
        size = len(padded(0, 1))
        if self.log.stat().st_size:
            at %= self.log.stat().st_size // size
            in_place(self.log, self.some(1), at * size)

    def _next(self) -> Path:
        self.turned += 1
        return self.folder / f"a.jsonl.{self.turned}"

    def rename(self, _: int) -> None:
        self.log.rename(self._next())
        self.log.touch()

    def copytruncate(self, count: int) -> None:
        shutil.copy(self.log, self._next())
        os.truncate(self.log, 0)
        self.append(count)

    def remove(self, count: int) -> None:
        """Delete it, and write another."""
        self.log.unlink()
        self.append(count)

    def there(self) -> dict[int, str]:
        """Numbers of the records that are in files now, and where."""
        return {
            int(number) - BASE: str(path)
            for path in sorted(self.folder.glob("a.jsonl*"))
            for number in _ID.findall(path.read_bytes())
        }


ACTIONS = ["append", "append", "rewrite", "over", "rename", "copytruncate", "remove"]
STEPS = st.one_of(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 6)), st.just(("look", 0)), st.just(("few", 0)))


@settings(max_examples=100, deadline=None)
@given(st.lists(STEPS, max_size=30), st.sampled_from([1 << 16, 1 << 12]))
def test_what_was_seen_is_read_or_its_file_is_named(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], leaf: int
) -> None:
    folder = tmp_path_factory.mktemp("any")
    feed, log = Feed(folder), Log(folder)
    ever: dict[int, str] = {}
    seen, named = set[int](), set[str]()

    def look(events: int) -> None:
        ever.update(log.there())
        plan = feed.plan(Budget(events, 1 << 30))
        named.update(problem.path for problem in plan.problems if problem.kind in ("lost-tail", "rewritten"))
        seen.update(numbers(feed.read(plan.splits)))

    actions: dict[str, Callable[[int], None]] = {name: getattr(log, name) for name in ACTIONS}
    actions |= {"look": lambda _: look(1000), "few": lambda _: look(5)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digests, "LEAF", leaf)
        for name, count in [*steps, *[("look", 0)] * 4]:
            actions[name](count)
        feed.ahead = 10_000
        look(1000)
        look(1000)
    assert set(log.there()) <= seen
    assert {path for number, path in ever.items() if number not in seen} <= named
