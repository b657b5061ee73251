"""The check of docstrings and messages in `make check`: words, lengths, and what proselint finds; code is no prose."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks import texts

LONG = "It " + "is a word and " * 7
GOOD = '''"""A module."""


def f(x):
    """Join each click once."""
    raise ValueError(f"{x}: is no click; look again")
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in (("README.md", "Each click is joined once.\n"), ("spark_apps/clickjoin/a.py", GOOD)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "docs").mkdir()
    return tmp_path


def test_the_project_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert texts.main() == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ("Join each click once.", "Join each click for ev" + "er.", "a.py:5: 'for ev" + "er': write indefinitely"),
        ("is no click; look again", "is no click of some" + "body", "a.py:6: 'some" + "body': write someone"),
        ("Join each click once.", "Join the" + " the click.", "a.py:5: 'the" + " the': write it once"),
        ("Join each click once.", "An affiliate part" + "nership of clicks, irre" + "gardless.", "a.py:5: 'irre"),
        ("is no click; look again", "it is at this point in ti" + "me no click", "a.py:6: "),
        ("Join each click once.", LONG + "once.", "docstrings: half of all sentences have more than"),
        ("A module.", "A module is here. " * 3 + LONG + "it.", "docstrings: 20.0% of all sentences have 28 words or"),
        ("is no click; look again", LONG, "messages: half of all sentences have more than"),
        ("Join each click once.", "Join " + "a word and " * 20 + "once.", "docstrings: spark_apps/clickjoin/a.py:5: "),
    ],
)
def test_what_is_refused(project: Path, capsys: pytest.CaptureFixture[str], was: str, now: str, message: str) -> None:
    assert texts.main(str(project)) == 0, capsys.readouterr().out
    (project / "spark_apps/clickjoin/a.py").write_text(GOOD.replace(was, now))
    assert texts.main(str(project)) == 1
    assert message in capsys.readouterr().out


def test_words_of_the_status_page(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("page", "vendor"):
        (project / "plugins" / name).mkdir(parents=True)
        (project / "plugins" / name / "a.js").write_text('say("until some' + 'body does")\n')
    assert texts.main(str(project)) == 1
    assert capsys.readouterr().out == "plugins/page/a.js:1: 'some" + "body': write someone\n"


def test_a_page_is_linted(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "README.md").write_text("It is joined irre" + "gardless.\n")
    assert texts.main(str(project)) == 1
    assert "README.md:1: 'irre" in capsys.readouterr().out


@pytest.mark.parametrize("code", ["`for ev" + "er`", "SELECT it for ev" + "er FROM the table"])
def test_code_is_no_prose(project: Path, code: str) -> None:
    (project / "spark_apps/clickjoin/a.py").write_text(GOOD.replace("is no click; look again", code))
    assert texts.main(str(project)) == 0
