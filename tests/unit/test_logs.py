"""A Delta log read by hand: what it holds is what Delta says it holds, and what a disk did to it is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake.log_entries import TableLog, read_log
from clickjoin.model.txn import Txn
from clickjoin.schemas import REGISTRY

LAST = 120  # commits: two checkpoints, of versions 49 and 99


@pytest.fixture
def delta(tmp_path: Path) -> ArrowTables:
    made = ArrowTables(str(tmp_path))
    made.create(REGISTRY)
    for number in range(1, LAST + 1):
        made.commit_txn_only("registry", Txn(f"p/main/{'join' if number % 2 else 'retry'}", number))
    return made


def entry(delta: ArrowTables, version: int, kind: str = "json") -> Path:
    return Path(delta.path("registry")) / "_delta_log" / f"{version:020}.{kind}"


def read(delta: ArrowTables) -> TableLog:
    return read_log(delta.path("registry"))


def test_it_says_what_delta_says(delta: ArrowTables) -> None:
    found, table = read(delta), delta.open("registry")
    assert (found.version, found.table_id, found.torn) == (LAST, table.metadata().id, ())
    assert dict(found.txns) == {"p/main/join": LAST - 1, "p/main/retry": LAST}
    assert found.settings["delta.enableDeletionVectors"] == "false"


def test_no_table(tmp_path: Path) -> None:
    assert read_log(str(tmp_path / "nothing")) == TableLog()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b"\0" * 300, "is empty"),
        (b"\n \n", "is empty"),
        (b'{"commitInfo":{}}\n{"tx', "is cut short"),
    ],
)
@pytest.mark.parametrize("version", [LAST, LAST - 5])
def test_an_entry_that_a_disk_left(delta: ArrowTables, version: int, content: bytes, why: str) -> None:
    entry(delta, version).write_bytes(content)
    found = read(delta)
    assert [(torn.file, torn.why, torn.version) for torn in found.torn] == [(f"{version:020}.json", why, version)]
    assert found.version == LAST


def test_an_entry_between_others_is_gone(delta: ArrowTables) -> None:
    entry(delta, LAST - 1).unlink()
    assert [(torn.version, torn.why) for torn in read(delta).torn] == [(LAST - 1, "is missing")]


def test_the_newest_entry_is_gone(delta: ArrowTables) -> None:
    """The log alone cannot tell: the journal does."""
    entry(delta, LAST).unlink()
    found = read(delta)
    assert (found.torn, found.version, found.txns["p/main/retry"]) == ((), LAST - 1, LAST - 2)


def test_entries_before_a_checkpoint_do_not_matter(delta: ArrowTables) -> None:
    for version in range(99):
        entry(delta, version).unlink()
    assert read(delta).torn == ()


@pytest.mark.parametrize("content", [b"", b"PAR1 and no more", None])
def test_a_checkpoint_that_cannot_be_read(delta: ArrowTables, content: bytes | None) -> None:
    file = entry(delta, 99, "checkpoint.parquet")
    file.write_bytes(file.read_bytes()[:900] if content is None else content)
    found = read(delta)
    assert [(torn.file, torn.checkpoint) for torn in found.torn] == [(file.name, True)]
    assert dict(found.txns) == {"p/main/join": LAST - 1, "p/main/retry": LAST}
    entry(delta, 80).unlink()  # the entries do not reach back to the checkpoint before it
    assert {torn.version for torn in read(delta).torn} == {99, 80}
