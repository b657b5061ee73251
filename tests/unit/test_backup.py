"""Backups: one moment of all tables, each file whole, nothing taken for a backup that is none."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from clickjoin.backup import snapshot
from clickjoin.backup import take as takes
from clickjoin.backup.manifest import backups, read
from clickjoin.backup.take import BackupResult, take
from clickjoin.lake.snapshot_files import Look
from clickjoin.lake.vacuum import Needed, vacuum
from clickjoin.model.errors import CommitConflict, ConfigError, LakeError
from tests.unit.lakes import Batches, ids, pipeline, tree

ROOT = Path(__file__).parents[2]


@pytest.fixture
def batches(tmp_path: Path) -> Batches:
    found = Batches(pipeline(tmp_path))
    found.run(1, 3)
    return found


def backup(batches: Batches, **more: Any) -> BackupResult:
    return take(batches.pipeline, Path(batches.pipeline.lake).parent / "backups", print, **{"wait": 5.0} | more)


def test_whole(batches: Batches) -> None:
    reports = Path(batches.pipeline.root, "_quality/2026-03-01")
    reports.mkdir(parents=True)
    (reports / "index.html").write_text("<p>")
    batches.plan(4)
    taken = backup(batches)
    assert taken.folder.parent == Path(batches.pipeline.lake).parent / "backups/p"
    assert ids(taken.folder, "registry") == ids(taken.folder, "joined") == ["e1", "e2", "e3"]
    assert taken.manifest.under_way == ("p/main/join/4",)
    assert {path for path in tree(taken.folder) if path != "manifest.json"} == taken.manifest.files.keys()
    assert read(taken.folder) == taken.manifest
    assert (taken.folder / "_quality/2026-03-01/index.html").read_text() == "<p>"


def test_tables_that_move_between_two_looks(batches: Batches, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at once, `registry` would be of before batch 4 and `joined` of after it: as old as a lost claim."""
    after: list[str] = []

    def look(root: str, name: str) -> Look | None:
        found = real(root, name)
        if not after and name == "registry":
            after.append(name)
            batches.run(4, 4)
        return found

    real = snapshot.look
    monkeypatch.setattr(snapshot, "look", look)
    taken = backup(batches)
    assert ids(taken.folder, "registry") == ids(taken.folder, "joined") == ["e1", "e2", "e3", "e4"]


def test_another_table_in_the_place_of_one(batches: Batches, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a rebuilding puts it: it may have the version of the one before."""
    registry, before = Path(batches.pipeline.root, "registry"), snapshot.cut(batches.pipeline.root, 1)
    shutil.copytree(registry, registry.with_name("other"))
    registry.rename(registry.with_name("registry.put-aside"))
    registry.with_name("other").rename(registry)
    after = snapshot.cut(batches.pipeline.root, 1)
    assert before["registry"].version == after["registry"].version
    assert before["registry"] != after["registry"]
    looked = [after, before]
    monkeypatch.setattr(takes, "cut", lambda root, wait: looked.pop())
    assert backup(batches).manifest.tables["registry"] == after["registry"].version
    assert not looked


def test_no_quiet_moment(batches: Batches, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers, real = iter(range(4, 10_000)), snapshot.look

    def look(root: str, name: str) -> Look | None:
        if name == "registry":
            batches.claim(next(numbers))
        return real(root, name)

    monkeypatch.setattr(snapshot, "look", look)
    with pytest.raises(CommitConflict, match=r"at every look for 0.3 s, last to registry.*--wait") as refused:
        backup(batches, wait=0.3)
    assert refused.value.retryable
    assert next(numbers) > 6
    assert backups(Path(batches.pipeline.lake).parent / "backups/p") == []


def test_beside_a_writer(batches: Batches, tmp_path: Path) -> None:
    """A writer claims, then publishes, for as long as backups are taken: none has output without its claim."""
    stop, last = threading.Event(), [3]

    def write() -> None:
        writer = Batches(batches.pipeline)
        while not stop.is_set():
            last[0] += 1
            writer.run(last[0], last[0])

    worker = threading.Thread(target=write)
    worker.start()
    try:
        taken = [backup(batches, wait=60) for _ in range(4)]
    finally:
        stop.set()
        worker.join()
    for one in taken:
        claimed, joined = (set(ids(one.folder, name)) for name in ("registry", "joined"))
        assert joined <= claimed
        assert len(claimed - joined) <= len(one.manifest.under_way) <= 1
    assert last[0] > 8


def test_data_files_are_copied_once(batches: Batches) -> None:
    first = backup(batches)
    batches.run(4, 4)
    second = backup(batches)
    data = [path for path in first.manifest.files if path.endswith(".parquet")]
    assert len(data) == first.copied - sum(path.endswith(".json") for path in first.manifest.files) > 0
    same = [(first.folder / path).stat().st_ino == (second.folder / path).stat().st_ino for path in data]
    assert all(same)
    assert all((second.folder / path).stat().st_nlink == 1 for path in second.manifest.files if "_delta_log" in path)
    assert ids(second.folder, "joined") == ["e1", "e2", "e3", "e4"]


def test_no_links_to_be_had(batches: Batches, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    backup(batches)
    monkeypatch.setattr(os, "link", refuse)
    assert ids(backup(batches).folder, "joined") == ["e1", "e2", "e3"]


def test_only_the_newest_are_kept(batches: Batches) -> None:
    first = backup(batches)
    left = first.folder.with_name("20010101T000000.000000Z.removing")
    left.mkdir()  # one whose removal was cut short
    second, third = backup(batches), backup(batches, keep=2)
    assert third.removed == (first.folder.name,)
    assert backups(first.folder.parent) == [second.folder, third.folder]
    assert not left.exists()
    assert ids(third.folder, "joined") == ["e1", "e2", "e3"]


def test_a_renamed_backup_is_as_old_as_it_is_and_never_removed(batches: Batches) -> None:
    first = backup(batches)
    named = first.folder.rename(first.folder.with_name("before-move"))
    batches.run(4, 4)
    second = backup(batches, keep=1)
    assert second.removed == ()
    assert backups(named.parent) == [named, second.folder]
    third = backup(batches, keep=1)
    assert third.removed == (second.folder.name,)
    assert backups(named.parent) == [named, third.folder]
    assert ids(named, "joined") == ["e1", "e2", "e3"]
    copied = [path for path in third.manifest.files if path.endswith(".parquet")]
    assert any((third.folder / path).stat().st_nlink > 1 for path in copied)  # of the newest, not of the last by name


def test_a_name_that_is_not_its_own_is_never_removed(batches: Batches) -> None:
    first = backup(batches)
    named = first.folder.rename(first.folder.with_name("20010101T000000.000000Z"))
    second = backup(batches, keep=1)
    assert (second.removed, backups(named.parent)) == ((), [named, second.folder])


def test_a_link_is_no_backup(batches: Batches, tmp_path: Path) -> None:
    first = backup(batches)
    link = first.folder.with_name("latest")
    link.symlink_to(first.folder.name)
    second = backup(batches, keep=2)
    assert second.removed == ()
    assert backups(link.parent) == [first.folder, second.folder]
    third = backup(batches, keep=1)
    assert third.removed == (first.folder.name, second.folder.name)
    assert backups(link.parent) == [third.folder]
    assert link.is_symlink()


@pytest.mark.parametrize("keep", [None, 1])
def test_what_others_put_there_stays(batches: Batches, tmp_path: Path, keep: int | None) -> None:
    first = backup(batches)
    (tmp_path / "elsewhere").mkdir()
    names = ("notes", "20010101T000000.000000Z", "lost+found", "20010101T000000.000000Z.removing.mine")
    for name in names:
        (first.folder.with_name(name) / "deep").mkdir(parents=True)
    first.folder.with_name("20020101T000000.000000Z.removing").symlink_to(tmp_path / "elsewhere")
    first.folder.with_name("a-file").touch()
    backup(batches, keep=keep)
    assert all((first.folder.with_name(name) / "deep").is_dir() for name in names)
    assert (tmp_path / "elsewhere").is_dir()


@pytest.mark.parametrize("text", ["{", "no time", "no zone"])
def test_a_manifest_that_cannot_be_read_hides_no_other(batches: Batches, text: str) -> None:
    first, second = backup(batches), backup(batches)
    file = second.folder / "manifest.json"
    held = json.loads(file.read_text()) | {"at": "yesterday" if text == "no time" else "2040-01-01T00:00:00"}
    file.write_text("{" if text == "{" else json.dumps(held))
    assert backups(first.folder.parent) == [second.folder, first.folder]
    third = backup(batches, keep=1)
    assert third.removed == (first.folder.name,)
    assert backups(first.folder.parent) == [second.folder, third.folder]
    shutil.rmtree(third.folder)
    assert backup(batches).folder.is_dir()  # although no manifest can be read


def test_a_removal_that_is_cut_short(batches: Batches, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(5, "Input/output error")

    first = backup(batches)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", refuse)
        with pytest.raises(LakeError, match="Input/output error"):
            backup(batches, keep=1)
    (second,) = backups(first.folder.parent)
    assert [place.name for place in first.folder.parent.glob("*.removing")] == [f"{first.folder.name}.removing"]
    third = backup(batches)
    assert backups(first.folder.parent) == [second, third.folder]
    assert not list(first.folder.parent.glob("*.removing"))


def test_a_file_is_collected_meanwhile(batches: Batches, monkeypatch: pytest.MonkeyPatch) -> None:
    real, times = takes._Copier.all, []

    def all_(self: takes._Copier, wanted: Any) -> Any:
        if not times:
            batches.delta.open("joined").delete("event_id = 'e1'")
            vacuum(batches.delta, "joined", Needed(time.time() + 2 * 86400))
        times.append(1)
        return real(self, wanted)

    monkeypatch.setattr(takes._Copier, "all", all_)
    assert ids(backup(batches).folder, "joined") == ["e2", "e3"]
    assert len(times) == 2


def test_older_versions_that_plans_name(batches: Batches) -> None:
    batches.wait(7)
    batches.plan_retry(1)
    named = batches.delta.version("pending")
    batches.delta.open("pending").delete("event_id = 'e7'")
    batches.wait(8)
    folder = backup(batches).folder
    assert ids(folder, "pending") == ["e8"]
    assert DeltaTable(str(folder / "pending"), version=named).to_pyarrow_table()["event_id"].to_pylist() == ["e7"]


@pytest.mark.parametrize("how", ["gone", "cut short"])
def test_a_damaged_lake(batches: Batches, how: str) -> None:
    file = next(Path(batches.pipeline.root, "joined").rglob("part-*.parquet"))
    file.unlink() if how == "gone" else os.truncate(file, 9)
    with pytest.raises(LakeError, match=rf"{file.name}: is (gone|9 bytes).*verify --repair"):
        backup(batches)
    assert not backups(Path(batches.pipeline.lake).parent / "backups/p")


def test_a_table_is_missing(batches: Batches) -> None:
    shutil.rmtree(Path(batches.pipeline.root, "registry"))
    with pytest.raises(LakeError, match="registry: the table is missing"):
        backup(batches)


def test_no_one_else_may_read_more(batches: Batches) -> None:
    root = Path(batches.pipeline.root)
    file = next((root / "joined").rglob("part-*.parquet"))
    file.chmod(0o640)
    (root / "joined").chmod(0o750)
    root.chmod(0o710)
    folder, before = backup(batches).folder, os.umask(0)
    os.umask(before)
    places = (folder.parent, folder, folder / "joined", folder / file.relative_to(root))
    assert [oct(place.stat().st_mode & 0o777) for place in places] == ["0o700", "0o710", "0o750", "0o640"]


def test_places_that_will_not_do(batches: Batches) -> None:
    lake = Path(batches.pipeline.lake)
    for place in (f"{lake}/p/backups", f"{lake.parent}/logs/q", f"{lake.parent}/logs/c/deep/er"):
        with pytest.raises(ConfigError, match="lies inside"):
            take(batches.pipeline, Path(place), print, wait=5)
    assert take(batches.pipeline, lake / "backups", print, wait=5).folder.is_dir()
    (lake.parent / "a-file").touch()
    with pytest.raises(LakeError, match="a-file/p: cannot be written or read"):
        take(batches.pipeline, lake.parent / "a-file", print, wait=5)


RUN = """
import sys
from pathlib import Path
from clickjoin.backup.take import take
from clickjoin.config import Pipeline
take(Pipeline.model_validate_json(sys.argv[1]), Path(sys.argv[2]), print, wait=5.0)
"""


def in_a_process(batches: Batches, fault: str = "", most_bytes: int = -1) -> subprocess.CompletedProcess[str]:
    """Take a backup in a process of its own, which may write files of so many bytes."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "spark_apps"), "CLICKJOIN_FAULT": fault}
    text = batches.pipeline.model_dump_json(include={"pipeline", "lake", "primary", "foreign"})
    line = [sys.executable, "-c", RUN, text, str(Path(batches.pipeline.lake).parent / "backups")]
    limit = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))) if most_bytes > 0 else None
    return subprocess.run(line, env=env, preexec_fn=limit, capture_output=True, text=True)


@pytest.mark.parametrize("point", ["backup-file", "backup-written"])
def test_killed(batches: Batches, point: str) -> None:
    home = Path(batches.pipeline.lake).parent / "backups/p"
    assert in_a_process(batches, point).returncode == -9
    assert (home / "partial").is_dir()
    assert backups(home) == []
    batches.run(4, 4)
    taken = backup(batches)
    assert {path for path in tree(taken.folder) if path != "manifest.json"} == taken.manifest.files.keys()
    assert ids(taken.folder, "joined") == ["e1", "e2", "e3", "e4"]
    assert not (home / "partial").exists()


def test_the_disk_is_full(batches: Batches) -> None:
    done = in_a_process(batches, most_bytes=1_000)
    assert "LakeError" in done.stderr
    assert "cannot be written" in done.stderr
    assert "what is there now is no backup" in done.stderr
    assert backups(Path(batches.pipeline.lake).parent / "backups/p") == []
    assert backup(batches).folder.is_dir()


def test_one_at_a_time(batches: Batches, tmp_path: Path) -> None:
    asleep = tmp_path / "asleep"
    asleep.touch()
    first = threading.Thread(target=in_a_process, args=(batches, f"backup-file:{asleep}"))
    first.start()
    partial, end = Path(batches.pipeline.lake).parent / "backups/p/partial", time.monotonic() + 30
    try:
        while not list(partial.rglob("*.json")):
            assert time.monotonic() < end
            time.sleep(0.05)
        with pytest.raises(ConfigError, match="another backup is under way"):
            backup(batches)
    finally:
        asleep.unlink()
        first.join()
    assert len(backups(partial.parent)) == 1


def test_a_manifest_is_plain(batches: Batches) -> None:
    held = json.loads((backup(batches).folder / "manifest.json").read_text())
    assert held["pipeline"] == "p"
    assert held["tables"]["registry"] == 3
    assert held["files"]["registry/_delta_log/00000000000000000003.json"][0] > 100
