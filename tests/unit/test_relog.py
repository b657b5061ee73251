"""A log that goes on after the versions of the one it replaces: a handle from before can commit nothing to it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from clickjoin.agreement.check import require_agreement
from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake.committer import LocalCommitter
from clickjoin.lake.folders import moving_tables
from clickjoin.lake.restored import MARK
from clickjoin.lake.restored_log import UNKNOWN, continue_after, go_on_after
from clickjoin.lake.snapshot_files import look
from clickjoin.lake.table_version import TableVersion
from clickjoin.model.errors import LakeError, LakeReplaced
from clickjoin.model.txn import Txn
from clickjoin.schemas import REGISTRY
from tests.unit.lakes import NOON, Batches, ids, pipeline, tree

HELD, NEWEST = 5, 9


@pytest.fixture
def batches(tmp_path: Path) -> Batches:
    return Batches(pipeline(tmp_path))


def put_back(batches: Batches, copy: Path) -> None:
    """The copy in the lake's place, with a log that goes on after the lake's."""
    root = Path(batches.pipeline.root)
    for name in ("registry", "joined", "journal"):
        seen = look(str(root), name)
        assert seen
        assert continue_after(str(copy), name, seen.version, 0) == seen.version + 2
    root.rename(f"{root}.aside")
    (copy / MARK).write_text("first")
    copy.rename(root)


@pytest.mark.parametrize("slept_at", [3, HELD, HELD + 1, NEWEST])
def test_a_handle_from_before_commits_nothing(batches: Batches, tmp_path: Path, slept_at: int) -> None:
    root, copy, handles = Path(batches.pipeline.root), tmp_path / "copy", {}
    for number in range(1, NEWEST + 1):
        batches.claim(number)
        if number == HELD:
            shutil.copytree(root, copy)
        handles[number] = DeltaTable(str(root / "registry"))
    put_back(batches, copy)
    before = tree(root / "registry/_delta_log")
    sleeper = handles[slept_at]
    delta = ArrowTables(str(root))
    assert not TableVersion(sleeper).commit_next([], Txn("p/other/join", 7))
    with pytest.raises(Exception, match=r"[Ff]ailed to commit"):
        sleeper.create_write_transaction([], "append", sleeper.schema())  # with delta-rs's own fifteen attempts
    assert tree(root / "registry/_delta_log") == before
    assert ids(root, "registry") == [f"e{n}" for n in range(1, HELD + 1)]
    assert (delta.version("registry"), delta.latest_txn_version("registry", "p/main/join")) == (NEWEST + 2, HELD)


def test_a_process_from_before_is_stopped(batches: Batches, tmp_path: Path) -> None:
    root, copy = Path(batches.pipeline.root), tmp_path / "copy"
    batches.run(1, HELD)
    shutil.copytree(root, copy)
    batches.run(HELD + 1, NEWEST)
    put_back(batches, copy)
    with pytest.raises(LakeReplaced, match="was restored, or a table rebuilt, while this process worked on it"):
        batches.claim(NEWEST + 1)
    with pytest.raises(LakeReplaced):
        batches.publish(NEWEST + 1)
    again = Batches(batches.pipeline)
    again.run(HELD + 1, HELD + 2)
    assert ids(root, "registry") == ids(root, "joined") == [f"e{n}" for n in range(1, HELD + 3)]


def test_older_versions_stay_readable(batches: Batches, tmp_path: Path) -> None:
    """A plan under way names a version."""
    root, copy = Path(batches.pipeline.root), tmp_path / "copy"
    for number in range(1, HELD + 1):
        batches.claim(number)
    shutil.copytree(root, copy)
    put_back(batches, copy)
    held = DeltaTable(str(root / "registry"), version=HELD - 1)
    assert (held.version(), held.to_pyarrow_table().num_rows) == (HELD - 1, HELD - 1)
    assert DeltaTable(str(root / "registry")).to_pyarrow_table().num_rows == HELD


def test_nothing_is_left_to_tell_the_newest(batches: Batches) -> None:
    batches.claim(1)
    root = batches.pipeline.root
    assert continue_after(root, "registry", 1 + UNKNOWN, 0) == UNKNOWN + 3
    batches.delta.forget("registry")
    batches.claim(2)
    assert (ids(root, "registry"), ArrowTables(root).version("registry")) == (["e1", "e2"], UNKNOWN + 4)


def test_more_versions_than_a_file_has_names(batches: Batches, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clickjoin.lake.restored_log._LINKS", 10)
    batches.claim(1)
    continue_after(batches.pipeline.root, "registry", 35, 0)
    log = Path(batches.pipeline.root, "registry/_delta_log")
    assert [len(set(log.glob(f"{v:020}.json"))) for v in range(38)] == [1] * 38
    assert max(place.stat().st_nlink for place in log.glob("*.json")) == 10


@pytest.mark.parametrize("left", ["nothing", "cut", "zeros", "gone"])
def test_a_damaged_file_of_the_journal_is_named(batches: Batches, left: str) -> None:
    """With the way back: who rebuilds it asks the same facts first."""
    batches.run(1, HELD)
    for path in batches.delta.files("journal")["path"].to_pylist():
        file = Path(batches.delta.path("journal"), path)
        data = file.read_bytes()
        file.write_bytes({"nothing": b"", "cut": data[: len(data) // 2], "zeros": bytes(len(data))}.get(left, b""))
        if left == "gone":
            file.unlink()
    with pytest.raises(LakeError, match=r"/journal: its rows cannot be read .*`clickjoin journal rebuild --replace`"):
        require_agreement(ArrowTables(batches.pipeline.root), batches.pipeline)


def test_a_rebuilt_table_goes_on_after_the_one_that_was_put_aside(batches: Batches) -> None:
    """So a process that sleeps between its look and its commit finds the next version taken, and is refused then."""
    batches.run(1, NEWEST)
    idle = ArrowTables(batches.pipeline.root)
    handle, delta = idle.open("registry"), batches.delta
    old = delta.version("registry")
    delta.replaces("registry rebuild", NOON)
    delta.create(replace(REGISTRY, name="registry.rebuilding"))
    with moving_tables(delta, "a test") as folders:
        folders.put_aside("registry", NOON)
        go_on_after(delta, "registry.rebuilding", folders.newest_aside("registry"), NOON)
        folders.rename("registry.rebuilding", "registry")
    assert delta.version("registry") == old + 2
    with pytest.raises(CommitFailedError):
        LocalCommitter().commit_next(handle, [], Txn("p/main/join", NEWEST + 1))
    with pytest.raises(LakeReplaced):
        idle.version("registry")
    assert delta.commit_txn_only("registry", Txn("p/main/join", NEWEST + 1))


def test_two_that_are_put_aside_in_one_second(batches: Batches) -> None:
    batches.run(1, HELD)
    with moving_tables(batches.delta, "a test") as folders:
        asides = [Path(folders.put_aside(name, NOON)).name for name in ("registry", "journal")]
        Path(batches.pipeline.root, asides[0]).rename(Path(batches.pipeline.root, "registry"))
        shutil.copytree(Path(batches.pipeline.root, "registry"), Path(batches.pipeline.root, asides[0]))
        again = Path(folders.put_aside("registry", NOON)).name
    assert again == f"{asides[0]}-1"
    assert look(batches.pipeline.root, again) is not None
