"""The number of the tables' format: who is refused, who goes on, and what raises it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from clickjoin.config import Pipeline, load
from clickjoin.jobs.erasing import forget
from clickjoin.lake import DeltaTables, table_format
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.table_format import formats, lake_format
from clickjoin.lake_setup import initialise
from clickjoin.lake_upgrade import changes, upgrade
from clickjoin.model.errors import LakeError, LakeReplaced
from clickjoin.model.txn import Txn
from clickjoin.schemas import ALL, BATCHES, BY_NAME
from clickjoin.schemas.format import FIRST, FORMAT, KEY

ROOT = Path(__file__).parents[2]


@pytest.fixture
def old(tmp_path: Path) -> Pipeline:
    """The lake that commit f630eee made of 66 clicks and 33 queries (`run --lease 12`), six of them without a query."""
    with tarfile.open(ROOT / "tests/lakes/format-1.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return load(tmp_path / "clicks.yaml")


@pytest.fixture
def new(old: Pipeline) -> Pipeline:
    """The same, upgraded."""
    upgrade(old, lambda _: None, apply=True)
    return old


def _rows(pipeline: Pipeline) -> dict[str, int]:
    delta = DeltaReader(pipeline.root)
    return {name: delta.rows(name) for name in formats(pipeline.root)}


def _run(pipeline: Pipeline, *command: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    config = Path(pipeline.lake).parent / "clicks.yaml"
    given = [sys.executable, "-m", "clickjoin.cli", *command, "--config", str(config)]
    return subprocess.run(given, env={**os.environ, **(env or {})}, capture_output=True, text=True)


def test_a_new_lake_has_the_number_in_every_table(tmp_path: Path, old: Pipeline) -> None:
    pipeline = old.model_copy(update={"lake": str(tmp_path / "new")})
    initialise(pipeline)
    for table in ALL:
        assert DeltaTable(f"{pipeline.root}/{table.name}").metadata().configuration[KEY] == str(FORMAT)
    assert upgrade(pipeline, print, apply=False)["changes"] == []


def test_an_old_lake_is_of_the_first_format_and_goes_on_as_it_is(old: Pipeline) -> None:
    assert set(formats(old.root).values()) == {FIRST}
    assert initialise(old) == ["forgotten"]  # it came later, and an older lake gets one
    assert lake_format(old.root) == FIRST  # an older copy that still runs must not be shut out by a newer one's start
    assert "misfits" in DeltaTables(old.root).columns("metrics")


def test_a_table_that_comes_to_an_old_lake_is_of_its_format(old: Pipeline) -> None:
    for name in ("quality", "dates"):
        Path(old.root, name).rename(Path(old.root).parent / name)
    assert sorted(initialise(old)) == ["dates", "forgotten", "quality"]
    assert set(formats(old.root).values()) == {FIRST}


def test_a_dry_run_says_what_and_writes_nothing(old: Pipeline) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in Path(old.root).rglob("*"))
    said = list[str]()
    found = upgrade(old, said.append, apply=False)
    assert sorted((path, path.stat().st_mtime_ns) for path in Path(old.root).rglob("*")) == before
    assert (found["format"], found["applied"], len(said)) == (FORMAT, False, len(ALL))
    assert f"metrics: format 1 to {FORMAT}, with column absent, false_positives, misfits" in said
    assert f"shard_timeline: format 1 to {FORMAT}, with column event_id, max_skew" in said
    assert list(found["brings"]) == list(range(2, FORMAT + 1))


def test_an_upgrade_changes_no_row_and_a_second_nothing(old: Pipeline) -> None:
    rows = _rows(old)
    upgrade(old, lambda _: None, apply=True)
    assert _rows(old) == rows | {"forgotten": 0}
    assert set(formats(old.root).values()) == {FORMAT}
    delta = DeltaTables(old.root)
    assert all(set(delta.columns(name)) >= set(BY_NAME[name].names) for name in ("metrics", "shard_timeline"))
    versions = {name: delta.version(name) for name in formats(old.root)}
    assert upgrade(old, print, apply=True)["changes"] == []
    assert {name: DeltaReader(old.root).version(name) for name in versions} == versions
    initialise(old)


def test_an_upgrade_that_was_killed_is_finished_by_another(old: Pipeline) -> None:
    killed = _run(old, "upgrade", "--apply", env={"CLICKJOIN_FAULT": "upgraded-table"})
    assert killed.returncode == -9
    assert sorted(set(formats(old.root).values())) == [FIRST, FORMAT]
    initialise(old)  # half of it done, the lake is still one that can be worked on
    assert len(changes(old)) == len(ALL) - 1
    done = _run(old, "upgrade", "--apply")
    assert (done.returncode, done.stderr) == (0, "")
    assert "is of format 2 now; what ran on it starts again" in done.stdout
    assert set(formats(old.root).values()) == {FORMAT}


def test_nothing_is_forgotten_in_an_older_lake(old: Pipeline) -> None:
    """A program from before would land the records again."""
    with pytest.raises(LakeError, match=r"older format.*clickjoin upgrade --apply"):
        forget(None, old, "main", print, where="foreign.user=U17", apply=True)  # type: ignore[arg-type]


def test_a_process_that_works_meanwhile_commits_nothing_more(old: Pipeline) -> None:
    at_work = DeltaTables(old.root)
    at_work.open("metrics")
    upgrade(old, lambda _: None, apply=True)
    with pytest.raises(LakeReplaced, match="the lake was upgraded while this process worked on it"):
        at_work.commit_txn_only("metrics", Txn("clicks/main/join", 99))
    again = DeltaTables(old.root)
    assert again.commit_txn_only("metrics", Txn("clicks/main/join", 99))


@pytest.mark.parametrize("command", ["run", "status", "gc", "reshard", "verify", "upgrade", "init", "backup"])
def test_a_newer_lake_is_refused_by_every_command(new: Pipeline, tmp_path: Path, command: str) -> None:
    table = DeltaTable(f"{new.root}/journal")
    table.alter.set_table_properties({KEY: str(FORMAT + 1)}, raise_if_not_exists=False)
    more = {"backup": ("--to", str(tmp_path / "copies")), "reshard": ("--shards", "4")}
    if command in ("run", "gc", "verify"):
        with pytest.raises(LakeError, match=rf"journal: is of format {FORMAT + 1}, and clickjoin \S+ knows formats up"):
            initialise(new, agreeing=command != "verify")  # what all that need Spark begin with
        return
    done = _run(new, command, *more.get(command, ()))
    assert done.returncode == 2, done.stdout
    assert f"clickjoin: {new.root}/journal: is of format {FORMAT + 1}, and clickjoin" in done.stderr
    assert "Use the clickjoin that upgraded this lake" in done.stderr


def test_whoever_has_a_table_open_is_refused_once_it_is_newer(new: Pipeline) -> None:
    delta = DeltaTables(new.root)
    delta.open("joined")
    DeltaTable(f"{new.root}/joined").alter.set_table_properties({KEY: str(FORMAT + 1)}, raise_if_not_exists=False)
    with pytest.raises(LakeError, match=f"joined: is of format {FORMAT + 1}"):
        delta.commit_txn_only("joined", Txn("clicks/main/join", 99))


@pytest.mark.parametrize("text", ["two", "0", "-1", "", "2.0", "²"])
def test_a_property_that_is_no_number_is_refused(new: Pipeline, text: str) -> None:
    DeltaTable(f"{new.root}/journal").alter.set_table_properties({KEY: text}, raise_if_not_exists=False)
    with pytest.raises(LakeError, match=r"journal: its property clickjoin.format is '.*', which is no format"):
        initialise(new)


def test_a_property_survives_a_table_that_another_writes_to(old: Pipeline) -> None:
    delta, other = DeltaTables(old.root), DeltaTables(old.root)
    delta.open("journal")
    assert other.commit_txn_only("journal", Txn("x/y/join", 1))
    assert delta.set_format("journal", FORMAT)
    assert not delta.set_format("journal", FORMAT)
    assert (delta.format("journal"), delta.latest_txn_version("journal", "x/y/join")) == (FORMAT, 1)
    with pytest.raises(LakeError, match=f"journal: is of format {FORMAT}, not {FIRST}"):
        delta.set_format("journal", FIRST)


def test_a_commit_that_came_first_is_no_end(old: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    delta, refused = DeltaTables(old.root), [True, True]
    alter = type(delta.open("journal").alter)
    real = alter.set_table_properties

    def refusing(self: object, *args: object, **more: object) -> None:
        if refused:
            refused.pop()
            raise CommitFailedError("another commit came first")
        real(self, *args, **more)

    monkeypatch.setattr(alter, "set_table_properties", refusing)
    assert delta.set_format("journal", FORMAT)
    assert delta.format("journal") == FORMAT


def test_without_the_gate_a_newer_table_would_be_worked_on(new: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    DeltaTable(f"{new.root}/journal").alter.set_table_properties({KEY: str(FORMAT + 1)}, raise_if_not_exists=False)
    monkeypatch.setattr(table_format, "FORMAT", FORMAT + 1)  # a program that knows it
    initialise(new)


def test_a_journal_that_is_rebuilt_is_of_the_lakes_format(old: Pipeline) -> None:
    delta = DeltaTables(old.root)
    delta.create(BATCHES, lake_format(old.root))
    assert delta.format("journal") == FIRST
