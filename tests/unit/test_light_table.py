"""Handles on tables of many files: they say what others say of the same version, and commit as others do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from clickjoin.engines.arrow.tables import ArrowTables
from clickjoin.lake import light_table, thin_log
from clickjoin.lake.committer import LocalCommitter
from clickjoin.lake.light_table import LightTable
from clickjoin.model.txn import Txn
from tests.unit.light_bench import BUCKETS, light, made, put, said
from tests.unit.light_bench import always as always
from tests.unit.light_bench import lake as lake


def test_whoever_writes(lake: ArrowTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thin_log.ThinLog, "MOST_ENTRIES", 4)
    rng, other = random.Random(7), ArrowTables(lake.root)
    for step in range(2, 40):
        writer = rng.choice([lake, other])
        if rng.random() < 0.7:
            assert put(writer, step, step, rng.choice(BUCKETS))
        elif rng.random() < 0.5:
            writer.open("registry").delete(f"bucket = '{rng.choice(BUCKETS)}'")
        else:
            writer.commit_txn_only("registry", Txn("join", step))
        if rng.random() < 0.2:
            DeltaTable(lake.path("registry")).create_checkpoint()
        assert said(lake.open("registry")) == said(DeltaTable(lake.path("registry")))
    light(lake)


def test_a_file_that_is_added_again_is_there_once(lake: ArrowTables) -> None:
    light(lake)
    put(ArrowTables(lake.root), 0, 2)
    assert said(light(lake)) == said(DeltaTable(lake.path("registry")))


def test_a_lost_race_leaves_no_trace(lake: ArrowTables) -> None:
    table = light(lake)
    put(ArrowTables(lake.root), 1, 2)
    entry = Path(lake.path("registry"), "_delta_log", f"{2:020}.json")
    before = entry.read_bytes()
    with pytest.raises(CommitFailedError):
        LocalCommitter().commit_next(table, [made(lake, 2)], Txn("join", 3))
    assert entry.read_bytes() == before
    assert [file.name for file in entry.parent.iterdir() if file.name.startswith(".")] == []
    assert put(lake, 2, 3)
    assert said(light(lake)) == said(DeltaTable(lake.path("registry")))
    assert not put(lake, 3, 3)


def test_a_commit_is_linked_into_place_and_never_over_another(lake: ArrowTables) -> None:
    table = light(lake)
    entry = Path(lake.path("registry"), "_delta_log", f"{2:020}.json")
    entry.write_bytes(b'{"commitInfo":{"timestamp":1}}\n')
    with pytest.raises(CommitFailedError):
        LocalCommitter().commit_next(table, [made(lake, 2)], Txn("join", 3))
    assert b"nonce" not in entry.read_bytes().lower()


def test_what_a_whole_table_answers(lake: ArrowTables) -> None:
    table = light(lake)
    put(lake, 1, 2, BUCKETS[2])
    assert lake.drop_buckets("registry", BUCKETS[1]).files == 1
    assert not table.is_light
    assert said(lake.open("registry")) == said(DeltaTable(lake.path("registry")))
    assert [row["num_records"] for row in lake.files("registry").to_pylist()] == [1]


def test_settings_that_change_are_seen(lake: ArrowTables) -> None:
    table = light(lake)
    DeltaTable(lake.path("registry")).alter.set_table_properties({"clickjoin.note": "x"}, raise_if_not_exists=False)
    assert (lake.open("registry").metadata().configuration or {})["clickjoin.note"] == "x"
    assert not table.is_light
    assert said(lake.open("registry")) == said(DeltaTable(lake.path("registry")))


@pytest.mark.parametrize(
    ("gone", "pointer"), [({0, 1}, True), ({0, 1, 2}, True), ({0, 1, 2, 3}, True), ({0, 1, 2}, False), ({2}, True)]
)
def test_a_handle_that_slept_until_the_log_was_cleaned(lake: ArrowTables, gone: set[int], pointer: bool) -> None:
    light(lake)  # at version 1
    other = ArrowTables(lake.root)
    for number in range(2, 5):
        put(other, number, number)
    log = Path(lake.path("registry"), "_delta_log")
    DeltaTable(lake.path("registry")).create_checkpoint()
    for version in gone:
        (log / f"{version:020}.json").unlink()
    if not pointer:
        (log / "_last_checkpoint").unlink()
    assert said(lake.open("registry")) == said(DeltaTable(lake.path("registry")))
    assert put(lake, 9, 9)
    assert said(lake.open("registry")) == said(DeltaTable(lake.path("registry")))


def test_an_entry_that_could_not_be_created_can_be_later(lake: ArrowTables, monkeypatch: pytest.MonkeyPatch) -> None:
    light(lake)

    def link(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("clickjoin.lake.thin_log.os.link", link)
        with pytest.raises(OSError, match="No space"):
            put(lake, 2, 2)
    assert put(lake, 2, 2)
    assert said(light(lake)) == said(DeltaTable(lake.path("registry")))


def test_a_folder_that_was_swept(lake: ArrowTables) -> None:
    table = light(lake)
    assert table._thin is not None
    for file in (table._thin.folder / "_delta_log").iterdir():
        file.unlink()
    assert said(lake.open("registry")) == said(DeltaTable(lake.path("registry")))
    assert not put(lake, 3, 1)


def test_a_torn_entry_is_reported_as_by_any_handle(lake: ArrowTables) -> None:
    light(lake)
    entry = Path(lake.path("registry"), "_delta_log", f"{2:020}.json")
    entry.write_bytes(b'{"add":{"pa')
    with pytest.raises(Exception, match=r".") as seen:
        DeltaTable(lake.path("registry"))
    with pytest.raises(type(seen.value)):
        lake.open("registry")
    entry.unlink()
    assert said(lake.open("registry")) == said(DeltaTable(lake.path("registry")))


def test_a_checkpoint_is_made_now_and_then(lake: ArrowTables) -> None:
    for number in range(2, 52):
        put(lake, number, number)
    light_table._checkpoints.submit(int).result()
    assert Path(lake.path("registry"), "_delta_log", f"{49:020}.checkpoint.parquet").exists()
    assert said(light(lake)) == said(DeltaTable(lake.path("registry")))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As it is outside of tests."""
    monkeypatch.setattr(light_table, "MANY", 10_000)
    return iter(())


@pytest.mark.usefixtures("few")
def test_few_files_are_left_to_delta_rs(lake: ArrowTables) -> None:
    assert not isinstance(lake.open("registry"), LightTable)
