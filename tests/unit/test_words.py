"""The word list of `make check`: it can fail, it names place and replacement; paths in the documents exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from checks import words

# Spelled in two halves, so that this file passes the check itself.
REFUSED = ["to" + "ld", "men" + "ded", "ane" + "w", "hel" + "d against", "see" + " to it", "nobody" + " rewrites"]
BASES = ("", "spark_apps", "spark_apps/clickjoin", "tests/simulator", "docs")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/page.md").write_text("All is well.\n")
    return tmp_path


def test_the_project_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert words.main() == 0, capsys.readouterr().out


@pytest.mark.parametrize("word", REFUSED)
def test_each_word_is_refused(project: Path, capsys: pytest.CaptureFixture[str], word: str) -> None:
    assert words.main(project) == 0
    (project / "docs/page.md").write_text(f"All is well.\nThis is {word} here.\n")
    assert words.main(project) == 1
    assert capsys.readouterr().out.startswith(f"docs/page.md:2: '{word}': write ")


def test_names_line_ends_and_capitals_count(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = REFUSED[0]
    (project / "code.py").write_text(f"x = 1\n_{name}_ids = {name.upper()} = 2\n# hold the rows\n# against\n")
    (project / "page.md").write_text("Each row is hel" + "d\nagainst the log.\n")
    assert words.main(project) == 1
    assert [line.split(": write")[0] for line in capsys.readouterr().out.splitlines()] == [
        f"code.py:2: '{name}'",
        f"code.py:2: '{name.upper()}'",
        "page.md:1: 'hel" + "d against'",
    ]


def test_parts_of_words_and_exempt_files_pass(project: Path) -> None:
    (project / "docs/page.md").write_text("Amendments unto" + "ld; a hold on the disk, then against the wall.\n")
    for exempt in ("CHANGELOG.md", "docs/vendor/README.md", "docs/picture.svg"):
        (project / exempt).parent.mkdir(exist_ok=True)
        (project / exempt).write_text(f"{REFUSED[0]}\n")
    assert words.main(project) == 0


def test_a_list_without_replacements_is_refused() -> None:
    with pytest.raises(ValueError, match="give a pattern, a tab and the replacement"):
        words.rules("word\n")
    assert len(words.rules("# a comment\n\nword\tother\n")) == 1


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md"])
def test_paths_in_documents_exist(name: str) -> None:
    for page in words.ROOT.glob(name):
        text = page.read_text()
        links = {page.parent / link for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)}
        assert [str(path) for path in links if not path.exists()] == [], page
        paths = re.findall(r"`((?:[\w.-]+/)*[\w.-]+\.py|(?:infra|dags|tests|plugins|spark_apps)/[\w./-]*)`", text)
        assert [path for path in paths if not any((words.ROOT / base / path).exists() for base in BASES)] == [], page
