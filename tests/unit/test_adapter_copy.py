"""A batch that is joined by its own process has an adapter of its own, as a task has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa

from clickjoin.engines.arrow.joining import own_copy
from clickjoin.kernel.adapter import ArrowAdapter, BothRecords, TypedOutput, is_users
from clickjoin.kernel.handshake import checked
from clickjoin.kernel.types import RecordFn


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


class Running(ArrowAdapter):
    """Says how many rows it has seen so far."""

    columns: ClassVar[dict[str, str]] = {"n": "BIGINT"}

    def __init__(self) -> None:
        self.seen = 0

    def merge_table(self, joined: pa.Table) -> pa.Table:
        self.seen += joined.num_rows
        return joined.append_column("n", pa.array([self.seen] * joined.num_rows))


def counted(adapter: ArrowAdapter) -> RecordFn:
    """What a task does: the adapter's rows of each batch."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from adapter.merge_table(pa.Table.from_batches([batch])).to_batches()

    return run


def test_what_it_keeps_is_of_one_task() -> None:
    rows = pa.table({"event_id": ["a"]})
    for _ in range(2):  # two batches, whose tasks have the same code
        task = checked(counted(Running()), fresh=is_users(Running()))
        for _ in range(2):
            assert next(task(iter(rows.to_batches())))["n"].to_pylist() == [1]


def test_only_a_users_own_may_keep_something() -> None:
    assert is_users(Running())
    assert not is_users(BothRecords())
    assert TypedOutput.__module__.startswith("clickjoin.")
