"""A batch that is joined by its own process has an adapter of its own, as a task has."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pyarrow as pa

from clickjoin.joiner.arrow_join import own_copy
from clickjoin.kernel.adapter import ArrowAdapter, BothRecords, is_users
from clickjoin.kernel.adapter_output import GIVEN, as_frame
from clickjoin.kernel.typed_columns.adapter import TypedOutput


class Counting(ArrowAdapter):
    """Keeps what it has seen, and a module and a view, which `copy` does not copy."""

    columns: ClassVar[dict[str, str]] = {"n": "BIGINT"}

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.held: tuple[Any, ...] = (json, {"a": 1}.keys())

    def merge_table(self, joined: pa.Table) -> pa.Table:
        self.seen.append(joined.num_rows)
        return joined


def test_what_it_keeps_is_of_one_batch() -> None:
    adapter = Counting()
    copy = own_copy(adapter)
    copy.merge_table(pa.table({"n": [1]}))
    assert (adapter.seen, copy.seen) == ([], [1])  # type: ignore[attr-defined]
    assert copy.held[0] is json  # type: ignore[attr-defined]


class Frame:
    """Takes what is to be mapped, in a DataFrame's place."""

    def select(self, *_: str) -> Frame:
        """The columns do not matter."""
        return self

    def mapInArrow(self, each: Any, _: str) -> Any:
        """What would travel to each task."""
        return each


class Running(ArrowAdapter):
    """Says how many rows it has seen so far."""

    columns: ClassVar[dict[str, str]] = {"n": "BIGINT"}

    def __init__(self) -> None:
        self.seen = 0

    def merge_table(self, joined: pa.Table) -> pa.Table:
        self.seen += joined.num_rows
        return joined.append_column("n", pa.array([self.seen] * joined.num_rows))


def test_what_it_keeps_is_of_one_task() -> None:
    frame: Any = Frame()
    one = dict.fromkeys(("event_id", "primary_id", "payload", "primary"), "a")
    given = pa.Table.from_pylist([one | {"event_time": 1, "primary_time": 1}])
    for _ in range(2):  # two batches, whose tasks have the same code
        task = as_frame(Running(), frame)
        for _ in range(2):
            assert next(task(iter(given.select(GIVEN.names).cast(GIVEN).to_batches())))["n"].to_pylist() == [1]


def test_only_a_users_own_may_keep_something() -> None:
    assert is_users(Running())
    assert not is_users(BothRecords())
    assert TypedOutput.__module__.startswith("clickjoin.")
