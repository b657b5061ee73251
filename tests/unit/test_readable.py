"""A lake that cannot be read: which table, which place, and what to do; never a trace of a library."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake.exceptions import DeltaError

from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake.readable import ReadableTables, readable
from clickjoin.model.errors import LakeError
from clickjoin.report.history import History
from clickjoin.report.overview import figures
from clickjoin.schemas import ALL
from tests.unit.test_history import NOW, metric


@pytest.fixture
def root(tmp_path: Path) -> Path:
    delta = ArrowTables(f"{tmp_path}/lake/p")
    for table in ALL:
        delta.create(table)
    delta.append("metrics", [metric(1, 60)])
    delta.append("shard_timeline", [{"shards": 4}])
    return tmp_path / "lake/p"


def refusal(root: Path, name: str) -> str:
    with pytest.raises(LakeError) as caught:
        ReadableTables(str(root)).read(name)
    assert caught.value.remedy
    assert "unknown" not in str(caught.value)
    return str(caught.value)


def test_what_is_there_is_read(root: Path) -> None:
    assert ReadableTables(str(root)).read("metrics").num_rows == 1


def test_no_lake(root: Path) -> None:
    lake = root.parent.with_name("other")
    assert refusal(lake / "p", "metrics").startswith(f"{lake}: the lake's folder is not there. Mount it")


def test_no_tables(root: Path) -> None:
    assert "holds no tables yet. If the pipeline is new, switch on" in refusal(root.with_name("new"), "metrics")


def test_a_table_is_missing(root: Path) -> None:
    (root / "dates").rename(root / "gone")
    assert refusal(root, "dates").startswith(f"{root}/dates: the table is missing. Restore it (docs/registry.md)")


def test_a_damaged_log(root: Path) -> None:
    (root / "shard_timeline/_delta_log/00000000000000000001.json").write_text("{broken")
    assert refusal(root, "shard_timeline").startswith(f"{root}/shard_timeline: its log or its files are damaged (")


def test_a_damaged_file(root: Path) -> None:
    next(root.glob("metrics/*/*/*.parquet")).write_text("xx")
    assert refusal(root, "metrics").startswith(f"{root}/metrics: its log or its files are damaged (")
    with pytest.raises(LakeError, match="metrics: its log or its files are damaged"):
        figures(History(ReadableTables(str(root))), NOW)


@pytest.mark.parametrize("words", ["No space left on device (os error 28)", "Disk quota exceeded"])
def test_a_full_disk_is_no_damage(root: Path, words: str) -> None:
    with pytest.raises(LakeError, match=r"metrics: the disk is full\. Make room"), readable(str(root), "metrics"):
        raise DeltaError(f"Generic LocalFileSystem error: {words}")


def test_a_file_that_is_gone(root: Path) -> None:
    next(root.glob("metrics/*/*/*.parquet")).unlink()
    assert refusal(root, "metrics").startswith(f"{root}/metrics: a file that its log names is gone")
    with pytest.raises(LakeError, match="a file that its log names is gone"):
        figures(History(ReadableTables(str(root))), NOW)


def test_a_folder_that_may_not_be_read(root: Path) -> None:
    """In a process of its own, as somebody whom permissions hold for: root may read everything."""
    (root / "foreign/_delta_log").chmod(0)
    script = f"""
import os
from clickjoin.lake.readable import ReadableTables
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    ReadableTables({str(root)!r}).read("foreign")
except Exception as error:
    print(error)
"""
    for folder in (root, *root.parents):  # temporary folders are closed to others
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith(f"{root}/foreign: may not be read (permission denied). Let the user"), done.stderr
