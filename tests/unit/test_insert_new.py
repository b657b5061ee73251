"""Rows come into a table once an event, whoever adds them meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from clickjoin.engines.arrow import ArrowLake, ArrowTables
from clickjoin.engines.arrow.insert_new import insert_new
from clickjoin.kernel.data_file import DataFile
from clickjoin.model.txn import Txn
from clickjoin.schemas import REGISTRY
from tests.unit.test_rewrite_rows import another, claims, ids_of, packed


class Late(ArrowTables):
    """Tables whose owner lets another go first, once, between its look at a table and its commit."""

    def __init__(self, root: str, meanwhile: Callable[[], object]) -> None:
        super().__init__(root)
        self.left = [meanwhile]

    def write(self, name: str, data: pa.Table) -> list[DataFile]:
        """Files of rows."""
        made = super().write(name, data)
        if self.left:
            self.left.pop()()
        return made


@pytest.fixture
def lake(tmp_path: Path) -> ArrowLake:
    """A registry that holds b."""
    made = another(tmp_path)
    made.delta.create(REGISTRY)
    made.delta.append_table("registry", claims("b"))
    return made


def insert(lake: ArrowLake, ids: str, txn: Txn | None = None) -> int:
    return insert_new(lake, "registry", claims(ids), None, txn)


def meanwhile(lake: ArrowLake, other: Callable[[ArrowLake], object]) -> ArrowLake:
    """The tables of a process that another one comes before."""
    late = another(lake.delta.root)
    late.delta = Late(lake.delta.root, lambda: other(another(lake.delta.root)))
    return late


def test_what_is_there_is_left_alone(lake: ArrowLake) -> None:
    assert [insert(lake, "abcB") for _ in range(2)] == [3, 0]
    assert ids_of(lake) == ["B", "a", "b", "c"]  # B: at another time, and so another event


def test_two_that_add_the_same(lake: ArrowLake) -> None:
    late = meanwhile(lake, lambda other: insert(other, "ac"))
    assert insert(late, "abcd") == 1
    assert ids_of(lake) == ["a", "b", "c", "d"]


def test_the_files_are_packed_by_another_meanwhile(lake: ArrowLake) -> None:
    insert(lake, "x")
    assert insert(meanwhile(lake, packed), "abx") == 1
    assert ids_of(lake) == ["a", "b", "x"]


def test_cut_short_before_the_commit(lake: ArrowLake) -> None:
    def dies(_: ArrowLake) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        insert(meanwhile(lake, dies), "a")
    assert ids_of(lake) == ["b"]
    assert insert(lake, "a") == 1


def test_a_late_copy_under_the_same_txn_adds_nothing(lake: ArrowLake) -> None:
    txn = Txn("main/recover", 4)
    late = meanwhile(lake, lambda other: insert(other, "b", txn))
    assert insert(late, "a", txn) == 0
    assert (ids_of(lake), lake.delta.latest_txn_version("registry", txn.app_id)) == (["b"], 4)


def test_the_answer_is_lost(lake: ArrowLake, lost_answer: list[int]) -> None:
    assert insert(lake, "abc") == 2
    assert (ids_of(lake), lake.delta.version("registry")) == (["a", "b", "c"], lost_answer[0])


def test_few_columns_of_many(lake: ArrowLake) -> None:
    lake.delta.add_columns("registry", {"more": "INT"})
    assert insert(lake, "a") == 1
    assert names_of(lake) == [*REGISTRY.names, "more"]


def names_of(lake: ArrowLake) -> Sequence[str]:
    return list(lake.delta.read("registry").column_names)
