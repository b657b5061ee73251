"""A handle that shows the newest version is not brought forward; what follows is seen by name, or by a checkpoint."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake.light_table import shows_newest
from clickjoin.lake.log_end import entry_of
from clickjoin.schemas import BATCHES


def commit(table: Path, times: int) -> None:
    """Somebody else's commits."""
    for _ in range(times):
        held = DeltaTable(table)
        write_deltalake(held, held.to_pyarrow_table().slice(0, 0), mode="append")


@pytest.fixture
def delta(tmp_path: Path) -> ArrowTables:
    made = ArrowTables(str(tmp_path))
    made.create(BATCHES)
    return made


def test_commits_of_others_are_seen(delta: ArrowTables, tmp_path: Path) -> None:
    before = delta.version("journal")
    assert shows_newest(delta.open("journal"))
    commit(tmp_path / "journal", 3)
    assert delta.version("journal") == before + 3
    assert shows_newest(delta.open("journal"))


@pytest.mark.parametrize("pointer", ["named", "lost", "damaged"])
def test_whoever_slept_until_the_log_was_cleaned_sees_them(delta: ArrowTables, tmp_path: Path, pointer: str) -> None:
    """A cleaner removes in no order, so that the next entry may go before the one that is known."""
    slept = delta.version("journal")
    log = tmp_path / "journal/_delta_log"
    commit(tmp_path / "journal", 5)
    DeltaTable(tmp_path / "journal").create_checkpoint()
    entry_of(log, slept + 1).unlink()
    if pointer == "lost":
        entry_of(log, slept).unlink()
        (log / "_last_checkpoint").unlink()
    if pointer == "damaged":
        (log / "_last_checkpoint").write_text("{")
    assert delta.version("journal") == slept + 5


def test_rows_that_come_are_read(delta: ArrowTables, tmp_path: Path) -> None:
    assert delta.read("journal").num_rows == 0
    held = DeltaTable(tmp_path / "journal")
    row = pa.Table.from_pylist([{"sequence": "join"}], held.to_pyarrow_table().schema)
    write_deltalake(held, row, mode="append")
    assert delta.read("journal").num_rows == 1
