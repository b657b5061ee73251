"""Backups from and to S3: one moment of all tables, little read twice, nothing taken for a lake that is half of one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clickjoin.backup.compare import compare
from clickjoin.backup.manifest import dated
from clickjoin.backup.restore import RestoreResult, restore
from clickjoin.backup.take import BackupResult, take
from clickjoin.lake import object_lock
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.stored_tree import StoredTree
from clickjoin.lake.tree import Tree, tree
from clickjoin.lake_setup import initialise
from clickjoin.model.errors import ConfigError, LakeError, LakeReplaced, StoreBusy
from stack.gateway import Gateway
from tests.s3.proxy import Proxy
from tests.unit.lakes import Batches, ids, pipeline

ROOT = Path(__file__).parents[2]
ALL = os.environ.get("CLICKJOIN_S3") == "all"  # `make s3-test`; else some, for each takes as long as its requests
POINTS = ("copied", "begun", "moved", "put-aside", "made") if ALL else ("moved",)


@pytest.fixture(scope="module", autouse=True)
def bucket(gateway: Gateway) -> Iterator[None]:
    gateway.bucket("backups")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in gateway.environment().items():
            patch.setenv(name, value)
        yield


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    """A prefix of each test's own."""
    return f"s3://backups/{request.node.name.replace('[', '-').replace(']', '')}"


@pytest.fixture
def batches(place: str, tmp_path: Path) -> Batches:
    """A lake on S3 in which three batches have run."""
    return made(tmp_path, f"{place}/lake")


def made(folder: Path, lake: str) -> Batches:
    found = Batches(pipeline(folder, lake=lake))
    found.run(1, 3)
    return found


def backup(batches: Batches, to: str, **more: Any) -> BackupResult:
    return take(batches.pipeline, to, print, **{"wait": 5.0} | more)


def back(batches: Batches, source: str, **more: Any) -> RestoreResult:
    return restore(batches.pipeline, source, "", print, **{"force": True} | more)


def held(place: Tree) -> dict[str, bytes]:
    return {path: place.read(path) or b"" for path in place.files()}


@pytest.mark.parametrize(("lake", "to"), [("s3", "s3"), *([("s3", "disk"), ("disk", "s3")] if ALL else [])])
def test_there_and_back(place: str, tmp_path: Path, lake: str, to: str) -> None:
    batches = made(tmp_path, f"{place}/lake" if lake == "s3" else "")
    shelf = f"{place}/shelf" if to == "s3" else f"{tmp_path}/shelf"
    root = batches.pipeline.root
    tree(root).at("_quality/2026-03-01").make()
    tree(root).write("_quality/2026-03-01/index.html", b"<p>")
    batches.plan(4)
    taken = backup(batches, shelf)
    assert taken.manifest.under_way == ("p/main/join/4",)
    assert tree(taken.place).files().keys() - {"manifest.json"} == taken.manifest.files.keys()
    assert tree(taken.place).read("_quality/2026-03-01/index.html") == b"<p>"
    assert ids(taken.place, "registry") == ids(taken.place, "joined") == ["e1", "e2", "e3"]
    batches.claim(4)
    before = held(tree(root))
    assert back(batches, shelf, dry_run=True).place == taken.place
    assert held(tree(root)) == before
    done = back(batches, shelf)
    assert done.aside
    assert held(tree(done.aside)) == before  # nothing is deleted
    assert ids(root, "registry") == ids(root, "joined") == ["e1", "e2", "e3"]
    assert all(done.versions[name] > taken.manifest.tables[name] for name in done.versions)
    with pytest.raises(LakeReplaced):
        batches.publish(4)
    again = Batches(batches.pipeline)
    assert (again.journal.planned(), again.journal.settled()) == (4, 3)
    again.claim(4)
    again.publish(4)
    assert ids(root, "registry") == ids(root, "joined") == ["e1", "e2", "e3", "e4"]
    assert list(compare(batches.pipeline, done.aside)) == []


@pytest.mark.skipif(not ALL, reason="by `make s3-test`")
def test_the_store_copies_by_itself_and_once(batches: Batches, place: str, gateway: Gateway) -> None:
    """No data file passes through this process; one that the backup before holds is not asked of the lake."""
    proxy = Proxy(gateway.port)
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in gateway.environment(proxy.port).items():
                patch.setenv(name, value)
            with proxy.rule("note", "GET", "*/part-*.parquet") as read:
                first = backup(batches, f"{place}/shelf")
                batches.run(4, 4)
                second = backup(batches, f"{place}/shelf")
    finally:
        proxy.stop()
    assert [path for path in read.met if "/journal/" not in path] == []
    assert first.copied == len(first.manifest.files)
    known = [path for path in second.manifest.files if path in first.manifest.files and path.endswith(".parquet")]
    assert second.copied == len(second.manifest.files) - len(known) < len(second.manifest.files)
    assert ids(second.place, "joined") == ["e1", "e2", "e3", "e4"]
    third = backup(batches, f"{place}/shelf", keep=1)
    home = tree(f"{place}/shelf/p")
    assert third.removed == (tree(first.place).name, tree(second.place).name)
    assert home.children() == [tree(third.place).name]


@pytest.mark.skipif(not ALL, reason="by `make s3-test`")
def test_a_backup_that_was_cut_short_is_none(batches: Batches, place: str) -> None:
    home = tree(f"{place}/shelf/p")
    for point in ("backup-file", "backup-written"):
        assert _killed(batches, "take", f"{place}/shelf", point)
        assert home.children() == ["partial"]
        assert dated(home) == []
    left = home.at("20010101T000000.000000Z")  # of one that was to get its name, or to lose it
    left.write("joined/a", b"1")
    with pytest.raises(ConfigError, match="one was begun and never finished"):
        back(batches, f"{place}/shelf")
    _forget_lock(home)
    taken = backup(batches, f"{place}/shelf")
    assert home.children() == [tree(taken.place).name]
    assert ids(taken.place, "joined") == ["e1", "e2", "e3"]
    assert taken.copied < len(taken.manifest.files)  # it went on from what was there


@pytest.mark.parametrize("point", [f"restore-{step}" for step in POINTS])
def test_a_restore_that_was_cut_short_is_no_lake(batches: Batches, place: str, point: str) -> None:
    backup(batches, f"{place}/shelf")
    batches.run(4, 6)
    assert _killed(batches, "restore", f"{place}/shelf", point)
    root = batches.pipeline.root
    if point == "restore-copied":  # nothing has happened yet
        batches.run(7, 7)
    else:
        for use in (lambda: initialise(batches.pipeline), lambda: backup(batches, f"{place}/other")):
            with pytest.raises(LakeError, match=r"a restore was cut short\. Run `clickjoin restore` again"):
                use()
        for name in ("joined", "registry", "journal"):
            with pytest.raises(LakeError, match=r"a restore was cut short\. Run `clickjoin restore` again"):
                DeltaReader(root).open(name)
        with pytest.raises((LakeError, LakeReplaced)):
            batches.run(7, 7)
    _forget_lock(tree(root).parent, ".p.restore.lock")
    done = back(batches, f"{place}/shelf")
    assert done.aside
    assert ids(done.aside, "joined")[:6] == [f"e{n}" for n in range(1, 7)]
    assert done.versions["registry"] == (7 if point == "restore-copied" else 6) + 2
    assert initialise(batches.pipeline) == []
    assert ids(root, "joined") == ["e1", "e2", "e3"]
    assert not tree(root).beside(".restoring").exists()


def test_one_at_a_time_and_a_lock_that_was_left(batches: Batches, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_lock, "RENEWED", 0.2)
    monkeypatch.setattr(object_lock, "LEFT", 1.5)
    home, asleep, going = tree(f"{place}/shelf/p"), threading.Event(), threading.Event()

    def hold() -> None:
        with home.alone(".lock", "another backup"):
            going.set()
            asleep.wait(60)

    worker = threading.Thread(target=hold)
    worker.start()
    try:
        assert going.wait(20)
        with pytest.raises(ConfigError, match=r"shelf/p: another backup is under way\. Wait until it has ended"):
            backup(batches, f"{place}/shelf")
    finally:
        asleep.set()
        worker.join()
    assert home.size(".lock") is None
    home.write(".lock", b"of a process that was killed")
    assert backup(batches, f"{place}/shelf").copied
    assert home.size(".lock") is None


def test_a_restore_that_was_paused_does_nothing_more(
    batches: Batches, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one has taken its lock over meanwhile, and has ended: the lake is the other's now."""
    monkeypatch.setattr(object_lock, "RENEWED", 1000.0)
    monkeypatch.setattr(object_lock, "LEFT", 1.0)
    backup(batches, f"{place}/shelf")
    removed, asleep, going, errors = StoredTree._remove_some, threading.Event(), threading.Event(), list[Exception]()

    def remove_some(self: StoredTree, keys: list[Any]) -> None:
        if threading.current_thread() is paused and not going.is_set():
            going.set()
            asleep.wait(120)
        removed(self, keys)

    def restore_paused() -> None:
        try:
            back(batches, f"{place}/shelf")
        except LakeError as error:
            errors.append(error)

    paused = threading.Thread(target=restore_paused)
    monkeypatch.setattr(StoredTree, "_remove_some", remove_some)
    paused.start()
    try:
        assert going.wait(60)
        monkeypatch.setattr(object_lock, "RENEWED", 0.2)
        back(batches, f"{place}/shelf")
        Batches(batches.pipeline).run(4, 4)
        before = held(tree(batches.pipeline.root))
    finally:
        asleep.set()
        paused.join()
    assert "another restore has taken this one's place" in str(errors[0])
    assert held(tree(batches.pipeline.root)) == before
    assert ids(batches.pipeline.root, "joined") == ["e1", "e2", "e3", "e4"]


@pytest.mark.skipif(not ALL, reason="by `make s3-test`")
def test_a_damaged_backup_leaves_the_lake(batches: Batches, place: str) -> None:
    taken = backup(batches, f"{place}/shelf")
    file = next(path for path in taken.manifest.files if path.endswith(".parquet"))
    data = tree(taken.place).read(file) or b""
    tree(taken.place).write(file, data[:-1] + bytes([data[-1] ^ 1]))
    for dry_run in (True, False):
        with pytest.raises(LakeError, match=rf"{taken.place}/{file}: the backup is damaged \(.*SHA-256"):
            back(batches, f"{place}/shelf", dry_run=dry_run)
    batches.run(4, 4)
    tree(taken.place).remove([file])
    with pytest.raises(LakeError, match=r"the backup is damaged"):
        back(batches, f"{place}/shelf", dry_run=True)


@pytest.mark.skipif(not ALL, reason="by `make s3-test`")
def test_refusals_by_name(batches: Batches, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    root = batches.pipeline.root
    with pytest.raises(ConfigError, match="lies inside the lake"):
        backup(batches, f"{root}/shelf")
    with pytest.raises(LakeError, match=r"s3://nowhere/shelf/p: there is no such bucket\. Create the bucket"):
        backup(batches, "s3://nowhere/shelf")
    proxy = Proxy(gateway.port)
    try:
        for name, value in gateway.environment(proxy.port).items():
            monkeypatch.setenv(name, value)
        shelf = f"{root.rpartition('/')[0]}/shelf"
        with proxy.rule("deny", "PUT", "*/shelf/*"), pytest.raises(LakeError, match=r"shelf/p.*is denied \(403\)"):
            backup(batches, shelf)
        with proxy.rule("refuse", "PUT", "*/shelf/*"), pytest.raises(StoreBusy, match="asks for fewer requests"):
            backup(batches, shelf)
    finally:
        proxy.stop()


RUN = """
import sys
from clickjoin.backup.restore import restore
from clickjoin.backup.take import take
from clickjoin.config import Pipeline
pipeline = Pipeline.model_validate_json(sys.argv[2])
if sys.argv[1] == "take":
    take(pipeline, sys.argv[3], print, wait=5.0)
else:
    restore(pipeline, sys.argv[3], "", print, force=True)
"""


def _killed(batches: Batches, what: str, place: str, point: str) -> bool:
    """Whether a process of its own came to a point, and was killed there."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "spark_apps"), "CLICKJOIN_FAULT": point}
    text = batches.pipeline.model_dump_json(include={"pipeline", "lake", "primary", "foreign"})
    if what == "take":
        _forget_lock(tree(place).at("p"))
    return subprocess.run([sys.executable, "-c", RUN, what, text, place], env=env, check=False).returncode == -9


def _forget_lock(home: Tree, name: str = ".lock") -> None:
    """As if the time had passed after which the lock of a killed process counts no more."""
    home.remove([name])
