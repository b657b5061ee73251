"""What keeps commits by light handles from being lost: writers that slept, threads, forks, copies that are gone."""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Lock
from typing import IO, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from clickjoin.engines.arrow.tables import ArrowTables
from clickjoin.kernel.data_file import DataFile
from clickjoin.lake import log_copy, thin_log
from clickjoin.lake.committer import _actions
from clickjoin.lake.light_table import LightTable
from clickjoin.lake.log_copy import new_folder
from clickjoin.lake.table_version import TableVersion
from clickjoin.model.errors import LakeError
from clickjoin.model.txn import Txn
from tests.unit.light_bench import always as always
from tests.unit.light_bench import lake as lake
from tests.unit.light_bench import light, made, put, said


def test_whoever_slept_until_the_log_was_cleaned_commits_nothing(lake: ArrowTables) -> None:
    asleep, other = lake.known("registry"), ArrowTables(lake.root)
    assert asleep.version == 1
    for number in range(2, 5):
        put(other, number, number)
    log = Path(lake.path("registry"), "_delta_log")
    DeltaTable(lake.path("registry")).create_checkpoint()
    for version in range(4):
        (log / f"{version:020}.json").unlink()
    assert not asleep.commit_next([made(lake, 9)], Txn("join", 9))
    assert sorted(file.name for file in log.glob("*.json")) == [f"{4:020}.json"]
    assert put(lake, 9, 9)
    assert said(light(lake))[5] == (9, None)


def test_a_handle_that_two_threads_commit_by(lake: ArrowTables, monkeypatch: pytest.MonkeyPatch) -> None:
    table, files = light(lake), [made(lake, number) for number in range(2, 10)]
    start, inside, real = Barrier(len(files)), Lock(), DeltaTable.create_write_transaction

    def alone(*arguments: Any, **more: Any) -> None:
        assert inside.acquire(blocking=False)
        time.sleep(0.01)
        try:
            real(*arguments, **more)
        finally:
            inside.release()

    def commit(file: DataFile) -> bool:
        start.wait()
        return TableVersion(table).commit_next([file], Txn(file.path, 1))

    monkeypatch.setattr(DeltaTable, "create_write_transaction", alone)
    with ThreadPoolExecutor(len(files)) as pool:
        done = list(pool.map(commit, files))
    assert done.count(True) == 1
    assert said(lake.open("registry")) == said(DeltaTable(lake.path("registry")))
    assert lake.latest_txn_version("registry", files[done.index(True)].path) == 1


def test_a_copy_that_cannot_be_written(lake: ArrowTables) -> None:
    table, newest = light(lake), lake.known("registry")
    assert table._thin is not None
    shutil.rmtree(table._thin.folder)
    table._thin.folder.touch()
    assert newest.commit_next([made(lake, 2)], Txn("join", 2))
    assert said(lake.open("registry")) == said(DeltaTable(lake.path("registry")))


def test_the_copy_has_the_one_checkpoint_that_it_began_with(lake: ArrowTables) -> None:
    log = light(lake)._thin
    assert log is not None
    DeltaTable(lake.path("registry")).alter.set_table_properties({"delta.checkpointInterval": "2"})
    log = light(lake)._thin
    assert log is not None
    for number in range(2, 8):
        put(lake, number, number)
    assert light(lake)._thin is log
    assert len(list((log.folder / "_delta_log").glob("*.checkpoint.parquet"))) == 1


@pytest.mark.parametrize("every", ["0", "often"])
def test_an_interval_that_is_none_fails_no_commit(lake: ArrowTables, every: str) -> None:
    entry = Path(lake.path("registry"), "_delta_log", f"{0:020}.json")
    entry.write_text(
        entry.read_text().replace('"delta.checkpointInterval":"25"', f'"delta.checkpointInterval":"{every}"')
    )
    lake.forget("registry")
    assert (light(lake).metadata().configuration or {})["delta.checkpointInterval"] == every
    assert put(lake, 2, 2)


def test_a_copy_that_delta_rs_cannot_read_is_done_without(lake: ArrowTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thin_log, "_metadata", lambda _: {"id": "x", "schemaString": "{"})
    lake.forget("registry")
    assert not isinstance(lake.open("registry"), LightTable)
    assert put(lake, 2, 2)


def test_an_overwriting_is_of_all_files_and_refused(lake: ArrowTables) -> None:
    """Also of those from before the copy begins. Nothing here overwrites a table, so whoever did was another."""
    lake.forget("registry")
    table = light(lake)
    table.create_write_transaction(_actions([made(lake, 2)], ()), "overwrite", table.schema())
    assert pa.table(DeltaTable(lake.path("registry")).get_add_actions())["num_records"].to_pylist() == [2]
    with pytest.raises(LakeError, match="is a RESTORE or an overwrite by another program"):
        lake.open("registry")


def test_a_process_forked_off_leaves_the_copy(lake: ArrowTables) -> None:
    log = light(lake)._thin
    assert log is not None
    owner = type("Owner", (), {})()
    folder = new_folder(owner)
    if (child := os.fork()) == 0:
        del owner
        os._exit(0)
    os.waitpid(child, 0)
    assert folder.is_dir()
    del owner
    assert not folder.exists()


def test_threads_that_begin_at_once_have_one_home(monkeypatch: pytest.MonkeyPatch) -> None:
    home: dict[int, tuple[Path, IO[str]]] = {}
    monkeypatch.setattr(log_copy, "_home", home)
    start, owners = Barrier(8), [type("Owner", (), {})() for _ in range(8)]

    def folder(owner: object) -> Path:
        start.wait()
        return new_folder(owner)

    with ThreadPoolExecutor(len(owners)) as pool:
        folders = list(pool.map(folder, owners))
    assert all(folder.is_dir() for folder in folders)
    assert len({folder.parent for folder in folders}) == 1
    home[os.getpid()][1].close()


def test_an_entry_may_be_read_by_whom_delta_rs_lets_read(lake: ArrowTables) -> None:
    before = os.umask(0o027)
    try:
        put(lake, 2, 2)
        DeltaTable(lake.path("registry")).delete("shard = 1")
    finally:
        os.umask(before)
    modes = [Path(lake.path("registry"), "_delta_log", f"{version:020}.json").stat().st_mode for version in (2, 3)]
    assert modes[0] == modes[1]


def test_a_registry_that_was_empty(lake: ArrowTables) -> None:
    DeltaTable(lake.path("registry")).delete()
    lake.forget("registry")
    light(lake)
    put(lake, 2, 2)
    assert said(lake.open("registry")) == said(DeltaTable(lake.path("registry")))
