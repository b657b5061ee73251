"""Transactions kept from look to look: what they say is what delta-rs says, and each entry is read once."""

from __future__ import annotations

from pathlib import Path

import pytest

from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake import txn_log
from clickjoin.lake.txn_log import TxnLog
from clickjoin.model.txn import Txn
from clickjoin.schemas import REGISTRY

JOIN, RETRY = "p/main/join", "p/main/retry"


@pytest.fixture
def delta(tmp_path: Path) -> ArrowTables:
    made = ArrowTables(str(tmp_path))
    made.create(REGISTRY)
    commit(made, 1, 60)  # a checkpoint at 49
    return made


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is read: versions of single entries, and `all`."""
    met: list[str] = []
    entry, log = txn_log.read_entry, txn_log.read_log
    monkeypatch.setattr(txn_log, "read_entry", lambda *at: (met.append(str(at[-1])), entry(*at))[1])
    monkeypatch.setattr(txn_log, "read_log", lambda path: (met.append("all"), log(path))[1])
    return met


def commit(delta: ArrowTables, begin: int, end: int, app: str = JOIN) -> None:
    for number in range(begin, end + 1):
        delta.commit_txn_only("registry", Txn(app, number))


def entry(delta: ArrowTables, version: int) -> Path:
    return Path(delta.path("registry")) / "_delta_log" / f"{version:020}.json"


def test_each_entry_is_read_once(delta: ArrowTables, read: list[str]) -> None:
    log = TxnLog(delta.path("registry"))
    for app, last in ((JOIN, 60), (RETRY, None), (JOIN, 60)):
        assert log.latest(delta.open("registry"), app) == last
    assert read == ["all"]
    commit(delta, 61, 62)
    commit(delta, 5, 5, RETRY)
    for app, last in ((JOIN, 62), (RETRY, 5)):
        table = delta.open("registry")
        assert log.latest(table, app) == table.transaction_version(app) == last
    assert read == ["all", "61", "62", "63"]


def test_a_commit_of_its_own_is_not_read(delta: ArrowTables, read: list[str]) -> None:
    log = TxnLog(delta.path("registry"))
    assert log.latest(delta.open("registry"), JOIN) == 60
    commit(delta, 61, 61)
    log.committed(61, JOIN, 61)
    commit(delta, 1, 1, RETRY)
    log.committed(63, RETRY, 2)  # not the next: what lies between must be read first
    table = delta.open("registry")
    assert [log.latest(table, app) for app in (JOIN, RETRY)] == [61, 1]
    assert read == ["all", "62"]


def test_entries_cleaned_up_meanwhile_are_in_the_checkpoint(delta: ArrowTables, read: list[str]) -> None:
    log = TxnLog(delta.path("registry"))
    assert log.latest(delta.open("registry"), JOIN) == 60
    commit(delta, 61, 110)
    entry(delta, 70).unlink()
    assert log.latest(delta.open("registry"), JOIN) == 110
    assert read == ["all", *map(str, range(61, 71)), "all"]


def test_a_shorter_log_is_read_again(delta: ArrowTables, read: list[str]) -> None:
    log = TxnLog(delta.path("registry"))
    assert log.latest(delta.open("registry"), JOIN) == 60
    for version in (59, 60):
        entry(delta, version).unlink()
    delta.forget("registry")
    assert log.latest(delta.open("registry"), JOIN) == 58
    assert read == ["all", "all"]


def test_of_a_damaged_log_delta_rs_says_what_it_holds(delta: ArrowTables, read: list[str]) -> None:
    log, table = TxnLog(delta.path("registry")), delta.open("registry")
    entry(delta, 55).write_bytes(b"")
    assert log.latest(table, JOIN) == 60
    assert read == ["all"]


def test_a_newer_entry_than_the_handle_shows_counts(delta: ArrowTables) -> None:
    log, table = TxnLog(delta.path("registry")), delta.open("registry")
    other = ArrowTables(delta.root)
    commit(other, 61, 61)
    assert log.latest(table, JOIN) == 61  # it is there, and no version after the handle's can be committed


def test_a_lower_number_that_comes_later_holds(delta: ArrowTables) -> None:
    """As another program may commit."""
    log, app = TxnLog(delta.path("registry")), "hold/2026-03-01"
    assert log.latest(delta.open("registry"), app) is None
    for until in (900, 300):
        assert delta.newest("registry").commit_next([], Txn(app, until))
    table = delta.open("registry")
    kept, whole = log.latest(table, app), TxnLog(delta.path("registry")).latest(table, app)
    assert kept == whole == table.transaction_version(app) == 300
