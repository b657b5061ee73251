"""What holds raw records is for its owner alone, unless the deployment says otherwise."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bootstrap import Problem
from clickjoin.config.starter import STARTER
from clickjoin.config.umask import umask
from clickjoin.model.errors import ConfigError
from stack import processes

PLACE = Path(__file__).parents[2] / "spark_apps"
BITS = [(None, 0o700, 0o600), ("027", 0o750, 0o640), ("0022", 0o755, 0o644)]


def modes(folder: Path) -> dict[bool, set[int]]:
    """Modes of all folders (True) and files (False) in a folder, and its own."""
    found: dict[bool, set[int]] = {True: {stat.S_IMODE(folder.stat().st_mode)}, False: set()}
    for path in folder.rglob("*"):
        found[path.is_dir()].add(stat.S_IMODE(path.stat().st_mode))
    return found


@pytest.mark.parametrize(("bits", "folders", "files"), BITS)
def test_tables_are_for_their_owner(tmp_path: Path, bits: str | None, folders: int, files: int) -> None:
    text = STARTER if bits is None else STARTER.replace("engine: spark", "engine: arrow")
    (tmp_path / "p.yaml").write_text(text)
    env = {name: value for name, value in os.environ.items() if name != "CLICKJOIN_UMASK"}
    env |= {"CLICKJOIN_UMASK": bits} if bits else {}
    command = [sys.executable, "-m", "clickjoin.cli", "init", "--config", str(tmp_path / "p.yaml")]
    subprocess.run(
        command, env=env, check=True, capture_output=True, umask=0, cwd=Path(__file__).parents[2] / "spark_apps"
    )
    assert modes(tmp_path / "lake") == {True: {folders}, False: {files}}


@pytest.mark.parametrize(("bits", "folders", "files"), BITS)
def test_so_is_what_a_server_writes(tmp_path: Path, bits: str | None, folders: int, files: int) -> None:
    code = "import os; os.mkdir('made'); open('made/file', 'w').close()"
    env = {"CLICKJOIN_UMASK": bits} if bits else {}
    server = processes.start("one", [sys.executable, "-c", code], env, tmp_path / "work", tmp_path / "log")
    assert processes._children[server.pid].wait(30) == 0
    assert modes(tmp_path / "work/made") == {True: {folders}, False: {files}}
    processes.stop([server])


@pytest.mark.parametrize("bits", ["7", "abc", "0o77", "-77", "888", "077 "])
def test_what_is_no_umask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bits: str) -> None:
    monkeypatch.setenv("CLICKJOIN_UMASK", bits)
    with pytest.raises(ConfigError, match=r"CLICKJOIN_UMASK is .*Write three octal digits"):
        umask()
    with pytest.raises(Problem, match=r"CLICKJOIN_UMASK is .*three octal digits"):
        processes.start("one", ["true"], os.environ, tmp_path, tmp_path / "log")
