"""Restoring: checked before anything is touched, all or nothing, and no empty lake begun between."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clickjoin.backup.compare import MissingEvent, compare
from clickjoin.backup.restore import RestoreResult, restore
from clickjoin.backup.take import BackupResult, take
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.readable import ReadableTables
from clickjoin.lake.restored import STAGING
from clickjoin.lake_setup import initialise
from clickjoin.model.errors import BatchError, ConfigError, LakeError, LakeReplaced
from clickjoin.model.ids import MICROS
from tests.unit.lakes import NOON, Batches, ids, pipeline, tree

ROOT = Path(__file__).parents[2]


@pytest.fixture
def batches(tmp_path: Path) -> Batches:
    found = Batches(pipeline(tmp_path))
    found.run(1, 3)
    return found


def place(batches: Batches) -> Path:
    return Path(batches.pipeline.lake).parent / "backups"


def backup(batches: Batches) -> BackupResult:
    return take(batches.pipeline, place(batches), print, wait=5.0)


def back(batches: Batches, **more: Any) -> RestoreResult:
    return restore(batches.pipeline, place(batches), more.pop("at", ""), print, **{"force": True} | more)


def test_there_and_back(batches: Batches) -> None:
    held = backup(batches).manifest
    batches.run(4, 9)
    before = tree(Path(batches.pipeline.root))
    done = back(batches)
    assert done.aside
    assert tree(Path(done.aside)) == before  # nothing is deleted
    root = batches.pipeline.root
    assert ids(root, "registry") == ids(root, "joined") == ["e1", "e2", "e3"]
    assert all(done.versions[name] > held.tables[name] for name in held.tables)
    with pytest.raises(LakeReplaced):
        batches.run(10, 10)
    again = Batches(batches.pipeline)
    assert (again.journal.planned(), again.journal.settled()) == (3, 3)
    again.run(4, 5)
    assert ids(root, "registry") == ids(root, "joined") == ["e1", "e2", "e3", "e4", "e5"]
    assert ids(backup(batches).folder, "joined") == ["e1", "e2", "e3", "e4", "e5"]


def test_a_version_that_has_its_checkpoint_already(batches: Batches) -> None:
    """As after gc: the backup holds the checkpoint, and no pointer to it."""
    for name in ("registry", "joined"):
        batches.delta.open(name).create_checkpoint()
    folder = backup(batches).folder
    assert list(Path(folder, "registry/_delta_log").glob("*.checkpoint.parquet"))
    assert not Path(folder, "registry/_delta_log/_last_checkpoint").exists()
    batches.run(4, 5)
    back(batches)
    root = batches.pipeline.root
    assert ids(root, "registry") == ids(root, "joined") == ["e1", "e2", "e3"]
    Batches(batches.pipeline).run(4, 4)
    assert ids(root, "registry") == ["e1", "e2", "e3", "e4"]


def test_a_lake_that_is_gone(batches: Batches) -> None:
    backup(batches)
    Path(batches.pipeline.lake).rename(Path(batches.pipeline.lake).with_name("lost"))
    assert back(batches, force=False).aside is None
    with pytest.raises(LakeReplaced):
        batches.run(4, 4)
    Batches(batches.pipeline).run(4, 4)
    assert ids(batches.pipeline.root, "joined") == ["e1", "e2", "e3", "e4"]


def test_which_one(batches: Batches) -> None:
    first = backup(batches)
    batches.run(4, 4)
    second = backup(batches)
    assert back(batches, dry_run=True).backup == second.folder
    assert back(batches, at=first.folder.name).backup == first.folder
    assert restore(batches.pipeline, second.folder, "", print, force=True).backup == second.folder
    with pytest.raises(ConfigError, match=f"no backup 2001 of pipeline p. Name one of {first.folder.name}, "):
        back(batches, at="2001")
    other = pipeline(place(batches).parent, "other")
    with pytest.raises(ConfigError, match="holds no backup of pipeline other"):
        restore(other, place(batches), "", print)
    with pytest.raises(ConfigError, match="is a backup of pipeline p, not of other"):
        restore(other, second.folder, "", print)


def test_the_newest_whatever_it_is_called(batches: Batches) -> None:
    first = backup(batches).folder
    named = first.rename(first.with_name("before-move"))
    second = backup(batches).folder
    assert back(batches, dry_run=True).backup == second
    assert back(batches, dry_run=True, at="before-move").backup == named


def test_a_link_that_the_user_made(batches: Batches) -> None:
    first, second = backup(batches).folder, backup(batches).folder
    link = first.with_name("latest")
    link.symlink_to(first.name)
    first.with_name("round").symlink_to("round")
    assert back(batches, dry_run=True).backup == second
    assert back(batches, dry_run=True, at="latest").backup == first
    for name in ("round", "..", f"../p/{first.name}", "*"):
        with pytest.raises(ConfigError, match=f"Name one of {first.name}, {second.name}$"):
            back(batches, dry_run=True, at=name)
    link.unlink()
    link.symlink_to("partial")
    second.rename(second.with_name("partial"))
    with pytest.raises(ConfigError, match="no backup latest of"):
        back(batches, dry_run=True, at="latest")


def test_a_manifest_that_cannot_be_read_is_passed_over_and_named(batches: Batches) -> None:
    first, second = backup(batches).folder, backup(batches).folder
    (second / "manifest.json").write_text("{")
    said: list[str] = []
    done = restore(batches.pipeline, place(batches), "", said.append, dry_run=True)
    assert done.backup == first
    assert said == [f"{second}: its manifest cannot be read; it was passed over"]
    with pytest.raises(LakeError, match=rf"{second.name}/manifest.json: cannot be read"):
        back(batches, at=second.name)


def _file(folder: Path) -> Path:
    return next((folder / "joined").rglob("part-*.parquet"))


def _flip(folder: Path) -> None:
    data = bytearray(_file(folder).read_bytes())
    data[len(data) // 2] ^= 1
    _file(folder).write_bytes(data)


def _point_outside(folder: Path) -> None:
    held = json.loads((folder / "manifest.json").read_text())
    held["files"]["../../stray"] = [1, ""]
    (folder / "manifest.json").write_text(json.dumps(held))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "the backup is damaged (": _flip,
    "bytes, SHA-256": lambda folder: os.truncate(_file(folder), 9),
    "is gone": lambda folder: _file(folder).unlink(),
    "cannot be read": lambda folder: os.truncate(folder / "manifest.json", 99),
    "outside of the backup": _point_outside,
}


@pytest.mark.parametrize("message", DAMAGE)
def test_a_damaged_backup(batches: Batches, message: str) -> None:
    DAMAGE[message](backup(batches).folder)
    before = tree(Path(batches.pipeline.root))
    with pytest.raises(LakeError) as refused:
        back(batches)
    assert message in str(refused.value)
    with pytest.raises(LakeError):
        back(batches, dry_run=True)
    assert tree(Path(batches.pipeline.root)) == before
    batches.run(4, 4)  # and who worked on the lake goes on


def test_a_backup_without_a_manifest_is_none(batches: Batches) -> None:
    folder = backup(batches).folder
    (folder / "manifest.json").unlink()
    folder.rename(folder.with_name("partial"))
    with pytest.raises(ConfigError, match="holds no backup of pipeline p; one was begun and never finished"):
        back(batches)


def age(batches: Batches) -> None:
    for commit in Path(batches.pipeline.root).rglob("*.json"):
        os.utime(commit, (NOON.timestamp(), NOON.timestamp()))


def test_while_somebody_works(batches: Batches) -> None:
    backup(batches)
    with pytest.raises(
        BatchError, match=r"registry: was committed to \d+ s ago. Stop every run.*clickjoin_.*__p.*--force"
    ):
        back(batches, force=False)
    age(batches)
    batches.plan(4)
    old = batches.fresh(5).planned - 3600 * MICROS  # of a process that is paused, perhaps
    batches.journal.plan(replace(batches.fresh(5), planned=old), NOON)
    age(batches)
    with pytest.raises(BatchError, match=r"batch p/main/join/5 is under way\. Stop every run"):
        back(batches, force=False)
    batches.journal.settle(5, {}, NOON)
    age(batches)
    assert back(batches, force=False).aside


RUN = """
import sys
from pathlib import Path
from clickjoin.backup.restore import restore
from clickjoin.config import Pipeline
restore(Pipeline.model_validate_json(sys.argv[1]), Path(sys.argv[2]), "", print, force=True)
"""


@pytest.mark.parametrize("point", ["restore-copied", "restore-put-aside", "restore-made"])
def test_killed(batches: Batches, point: str) -> None:
    backup(batches)
    batches.run(4, 6)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "spark_apps"), "CLICKJOIN_FAULT": point}
    text = batches.pipeline.model_dump_json(include={"pipeline", "lake", "primary", "foreign"})
    assert subprocess.run([sys.executable, "-c", RUN, text, str(place(batches))], env=env).returncode == -9
    root = batches.pipeline.root
    if point == "restore-copied":  # nothing has happened yet
        batches.run(7, 7)
    else:
        with pytest.raises(LakeError, match=r"a restore was cut short\. Run `clickjoin restore` again"):
            initialise(batches.pipeline)
        for reader in (DeltaReader(root), ReadableTables(root)):
            with pytest.raises(LakeError, match=r"a restore was cut short\. Run `clickjoin restore` again"):
                reader.open("joined")
        assert not Path(root).exists()
    done = back(batches)
    assert done.aside
    assert ids(done.aside, "joined")[:6] == [f"e{n}" for n in range(1, 7)]
    assert done.versions["registry"] == (7 if point == "restore-copied" else 6) + 2
    assert not Path(f"{root}{STAGING}").exists()
    assert initialise(batches.pipeline) == []
    assert ids(root, "joined") == ["e1", "e2", "e3"]


def test_a_sleeper_makes_the_folder_again(batches: Batches, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the two renames a data file of a process that slept may make the lake's folder."""
    from clickjoin.model import failpoint

    def reach(point: str) -> None:
        if point == "restore-made":
            stray = Path(batches.pipeline.root, "joined/part-1.parquet")
            stray.parent.mkdir(parents=True)
            stray.touch()

    backup(batches)
    monkeypatch.setattr(failpoint, "reach", reach)
    back(batches)
    assert ids(batches.pipeline.root, "joined") == ["e1", "e2", "e3"]
    assert len(list(Path(batches.pipeline.lake).glob("p.put-aside-*"))) == 2


def test_what_the_lake_before_had_alone(batches: Batches) -> None:
    backup(batches)
    batches.run(4, 7)
    aside = back(batches).aside
    assert aside
    again = Batches(batches.pipeline)
    again.run(4, 4)
    again.wait(6)
    gone = [MissingEvent("e5", NOON, "q", "never read"), MissingEvent("e6", NOON, "q", "pending"),
            MissingEvent("e7", NOON, "q", "never read")]  # fmt: skip
    assert list(compare(batches.pipeline, Path(aside))) == gone
    again.run(5, 7)
    assert list(compare(batches.pipeline, Path(aside))) == []
    with pytest.raises(ConfigError, match="holds no table `joined`"):
        list(compare(batches.pipeline, Path(batches.pipeline.lake)))
