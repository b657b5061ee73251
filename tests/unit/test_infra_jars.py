"""The JARs in `.jars` are exactly the locked ones, or set-up fails and says which is not."""

import hashlib
from pathlib import Path

import pytest

from bootstrap import Problem, jars, locks
from bootstrap.jars import Jar

CONTENT = b"a jar"


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "jars.lock"
    path.write_text(f"# comment\nio.delta:delta-storage:4.4.0 sha256:{hashlib.sha256(CONTENT).hexdigest()}\n")
    return path


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What the next retrievals bring, in order."""
    answers: list[bytes] = []

    def retrieve(folder: Path, ivy: Path) -> None:
        (folder / "delta-storage-4.4.0.jar").write_bytes(answers.pop(0))

    monkeypatch.setattr(jars, "retrieve", retrieve)
    return answers


def test_lock_names_coordinates_and_files(lock):
    assert [(jar.coordinate, jar.file) for jar in jars.read_lock(lock)] == [
        ("io.delta:delta-storage:4.4.0", "delta-storage-4.4.0.jar")
    ]


def test_second_time_nothing_is_fetched(tmp_path, lock, fetched):
    fetched.append(CONTENT)
    for _ in range(2):
        jars.ensure(tmp_path / "jars", lock)
    assert (tmp_path / "jars/delta-storage-4.4.0.jar").read_bytes() == CONTENT


def test_other_content_is_refused_and_removed(tmp_path, lock, fetched):
    fetched += [b"tampered with", CONTENT]
    with pytest.raises(Problem, match=r"^delta-storage-4\.4\.0\.jar is not what is locked, and was removed"):
        jars.ensure(tmp_path / "jars", lock)
    assert not list((tmp_path / "jars").iterdir())
    jars.ensure(tmp_path / "jars", lock)


def test_jar_that_goes_missing_is_fetched_again(tmp_path, lock, fetched):
    fetched += [CONTENT, CONTENT]
    jars.ensure(tmp_path / "jars", lock)
    (tmp_path / "jars/delta-storage-4.4.0.jar").unlink()
    jars.ensure(tmp_path / "jars", lock)
    assert fetched == []


def test_interrupted_fetch_keeps_what_is_sound(tmp_path, lock, fetched):
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars/delta-storage-4.4.0.jar").write_bytes(CONTENT)
    jars.ensure(tmp_path / "jars", lock)
    assert fetched == []


def test_jars_of_an_earlier_lock_go(tmp_path, lock, fetched):
    fetched.append(CONTENT)
    old = tmp_path / "jars/delta-storage-4.3.0.jar"
    old.parent.mkdir()
    old.touch()
    jars.ensure(tmp_path / "jars", lock)
    assert not old.exists()


def test_locked_jar_that_ivy_does_not_name(tmp_path):
    with pytest.raises(Problem, match=r"^x-1\.jar is locked but was not fetched"):
        jars.verify(tmp_path, [Jar("g:x:1", "")])


@pytest.mark.parametrize(("lock", "ivy"), [(jars.LOCK, jars.IVY), (jars.S3_LOCK, jars.S3_IVY)])
def test_lock_and_ivy_file_name_the_same(lock, ivy):
    assert [jar.coordinate for jar in jars.read_lock(lock)] == locks.coordinates(ivy)
