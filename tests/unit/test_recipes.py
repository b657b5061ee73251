"""README, quick start and all recipes of docs/how-to, run as a reader would: their files, commands, and what they show.

A fence's title says what it is: a file to write, `printed` (lines of the last command's output), `lake/…` (a table's
rows), or `not run: reason`. A comment `exits with N` behind a command is its exit code.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

FOLDER = Path(__file__).parents[2] / "docs/how-to"
RECIPES = [FOLDER.parents[1] / "README.md", FOLDER.parent / "quick-start.md", *sorted(FOLDER.glob("*.md"))]
NOT_RUN = 8  # fences of all recipes together, at most
_FENCE = re.compile(r'^```(\w+)(?: title="([^"]*)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"exits with (\d)")

Run = Callable[..., tuple[int, str, str]]


def fences(page: Path) -> list[tuple[str, str, str]]:
    """Language, title and text of each code block."""
    text = page.read_text(encoding="utf-8")
    found = _FENCE.findall(text)
    assert 2 * len(found) == len(re.findall("^```", text, re.MULTILINE)), f"{page.name}: a fence is not read"
    return found


@dataclass
class Reader:
    """Who follows a recipe in an empty folder."""

    run: Run
    folder: Path
    printed: str = ""
    compared: list[str] = field(default_factory=list)

    def follow(self, language: str, title: str, text: str) -> None:
        if title.startswith("not run: "):
            assert len(title) > len("not run: ") + 10, "say why"
        elif language == "sh":
            self.printed = "".join(map(self.command, text.splitlines()))
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
        if line.startswith("clickjoin "):
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


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
def test_a_recipe(page: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # `export PYTHONPATH=.` of a recipe with an adapter
    reader = Reader(run, tmp_path)
    blocks = fences(page)
    for block in blocks:
        reader.follow(*block)
    if any(language == "yaml" and not title.startswith("not run") for language, title, _ in blocks):
        assert reader.compared, f"{page.name}: show what comes out"


def test_few_blocks_are_not_run() -> None:
    titles = [title for page in RECIPES for _, title, _ in fences(page) if title.startswith("not run")]
    assert len(titles) <= NOT_RUN


def test_a_wrong_row_or_line_is_found(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = fences(FOLDER / "one-log.md")
    reader = Reader(run, tmp_path)
    for language, title, text in blocks:
        if title == "printed" or title.startswith("lake/"):
            with pytest.raises(AssertionError):
                reader.follow(language, title, text.replace("2", "3").replace("shoe", "hat"))
        else:
            reader.follow(language, title, text)
    assert not reader.compared
