"""Data files on an object store: short ones are read whole, once, and not more of them is kept than there is room."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from clickjoin.kernel import filesystem as short_files


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is taken for a bucket."""
    system = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
    monkeypatch.setattr(short_files, "filesystem", lambda root: (system, root))
    monkeypatch.delitem(pafs.__dict__, "_clickjoin_short_files", raising=False)
    (tmp_path / "t").mkdir()
    return tmp_path / "t"


def test_a_short_file_is_read_once(store: Path) -> None:
    (store / "a").write_bytes(b"short")
    for _ in range(2):
        with short_files.open_file("t", "a") as opened:
            assert (opened.read(), opened.size()) == (b"short", 5)
        (store / "a").unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError):
        short_files.open_file("t", "b")


def test_a_long_file_is_read_by_ranges(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_files, "SHORT", 4)
    (store / "a").write_bytes(b"longer")
    with short_files.open_file("t", "a") as opened:
        assert not isinstance(opened, pa.BufferReader)
    (store / "a").unlink()
    with pytest.raises(FileNotFoundError):
        short_files.open_file("t", "a")


def test_what_was_used_last_is_kept(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_files, "_KEPT", 10)
    for name in "abc":
        (store / name).write_bytes(b"1234")
    for name in "abac":  # c drives b out
        short_files.open_file("t", name).close()
    for name in "abc":
        (store / name).unlink()
    for name in "ac":
        with short_files.open_file("t", name) as opened:
            assert opened.read() == b"1234"
    with pytest.raises(FileNotFoundError):
        short_files.open_file("t", "b")
