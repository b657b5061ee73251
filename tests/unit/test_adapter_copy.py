"""A batch that is joined by its own process has an adapter of its own, as a task has."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pyarrow as pa

from clickjoin.joiner.arrow_join import own_copy
from clickjoin.kernel.adapter import ArrowAdapter


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
