"""README, quick start and all recipes of docs/how-to, run as a reader would: their files, commands, and what they show.

A fence's title says what it is: a file to write, `printed` (lines of the last command's output) or `lake/…` (a table's
rows). A comment `exits with N` behind a command is its exit code. What is not run says why: see infra/checks/blocks.py.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from checks.blocks import Block, blocks, recipes
from checks.words import ROOT

_CODE = re.compile(r"exits with (\d)")

Run = Callable[..., tuple[int, str, str]]


@dataclass
class Reader:
    """Who follows a recipe in an empty folder."""

    run: Run
    folder: Path
    printed: str = ""
    compared: list[str] = field(default_factory=list)

    def follow(self, block: Block) -> None:
        title, text = block.title or "", block.text
        if block.language == "sh":
            self.printed = "".join(map(self.command, text.replace("\\\n", " ").splitlines()))
        elif title == "printed":
            lines = self.printed.splitlines()
            assert [line for line in text.splitlines() if line not in lines] == [], self.printed
            self.compared.append(title)
        elif title.startswith("lake"):
            assert rows_of(self.folder / title, text.splitlines()[0]) == sorted(text.splitlines()[1:])
            self.compared.append(title)
        else:
            assert title, "a file has no name"
            path = self.folder / title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def command(self, line: str) -> str:
        expected = int(([*_CODE.findall(line), "0"])[0])
        words = shlex.split(line, comments=True)
        if re.match(r"(?:\.venv/bin/)?clickjoin ", line):
            code, out, err = self.run(*words[1:])
        else:
            environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
            done = subprocess.run(line, shell=True, cwd=self.folder, env=environment, capture_output=True, text=True)
            code, out, err = done.returncode, done.stdout, done.stderr
        assert code == expected, out + err
        return out + err


def rows_of(table: Path, header: str) -> list[str]:
    """Rows of a table as a page shows them, under its header, in order."""
    widths = [len(cell) for cell in re.findall(r"\S+\s*", header)]
    columns = header.split()
    rows = DeltaTable(str(table)).to_pyarrow_table(columns=columns).to_pylist()
    return sorted(
        "".join(_text(row[name]).ljust(width) for name, width in zip(columns, widths, strict=True)).rstrip()
        for row in rows
    )


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return "null" if value is None else str(value)


@pytest.mark.parametrize("page", recipes(), ids=lambda page: page.stem)
def test_a_recipe(page: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # `export PYTHONPATH=.` of a recipe with an adapter
    reader = Reader(run, tmp_path)
    steps = [block for block in blocks(page) if block.kind != "not run"]
    for block in steps:
        reader.follow(block)
    if any(block.language == "yaml" for block in steps):
        assert reader.compared, f"{page.name}: show what comes out"


def test_a_wrong_row_or_line_is_found(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reader = Reader(run, tmp_path)
    for block in blocks(ROOT / "docs/how-to/one-log.md"):
        if block.kind == "output":
            with pytest.raises(AssertionError):
                reader.follow(replace(block, text=block.text.replace("2", "3").replace("shoe", "hat")))
        else:
            reader.follow(block)
    assert not reader.compared
