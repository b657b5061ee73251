"""Refuses words of words.txt in code, documentation, messages and templates, and says what to write instead.

Run it as `PYTHONPATH=infra python -m checks.words [FOLDER]`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("words.txt")
ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("benchmarks", "dags", "docs", "infra", "plugins", "spark_apps", "tests")
SUFFIXES = {".c", ".css", ".env", ".html", ".in", ".j2", ".java", ".js", ".md", ".py", ".toml", ".yaml", ".yml"}
EXEMPT = {"CHANGELOG.md"}  # what was said in its day; texts of others are in the folders below
OTHERS = {"vendor", "data", "results", "__pycache__"}


@dataclass(frozen=True)
class Rule:
    """A pattern that is refused, and what to write instead."""

    pattern: re.Pattern[str]
    instead: str


@dataclass(frozen=True)
class Finding:
    """A refused word: where it stands, and what to write instead."""

    file: Path
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.word!r}: write {self.instead}"


def rules(text: str) -> list[Rule]:
    """The rules of a word list. Errors: ValueError for a line without a replacement, re.error for a bad pattern."""
    made = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        pattern, tab, instead = line.partition("\t")
        if not tab or not instead.strip():
            raise ValueError(f"{line!r}: give a pattern, a tab and the replacement")
        spaced = pattern.replace(" ", r"\s+")
        made.append(Rule(re.compile(rf"(?<![A-Za-z])(?:{spaced})(?![A-Za-z])", re.IGNORECASE), instead.strip()))
    return made


def findings(file: Path, text: str, checked: Sequence[Rule]) -> Iterator[Finding]:
    """Refused words of a text, by rule and then by place."""
    for rule in checked:
        for match in rule.pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield Finding(file, line, " ".join(match[0].split()), rule.instead)


def files(root: Path) -> Iterator[Path]:
    """What is checked below a folder: files at its top and in FOLDERS that hold code or prose of ours."""
    candidates = [*root.iterdir(), *(path for name in FOLDERS for path in (root / name).rglob("*"))]
    for path in sorted(candidates):
        inside = path.relative_to(root)
        if path.name not in EXEMPT and not OTHERS & set(inside.parts) and _has_prose(path):
            yield path


def _has_prose(path: Path) -> bool:
    return path.is_file() and (path.suffix in SUFFIXES or path.name in {"Makefile", "Dockerfile"})


def main(root: Path = ROOT) -> int:
    """Print what is refused; the exit code is 1 if anything is."""
    checked = rules(LIST.read_text())
    refused = [
        finding
        for path in files(root)
        for finding in findings(path.relative_to(root), path.read_text(errors="replace"), checked)
    ]
    print(*refused, sep="\n", end="\n" if refused else "")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
