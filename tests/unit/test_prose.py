"""The prose check of `make check`: it can fail, and it reads sentences and no code."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks import prose

SHORT = "Each click is joined once. A click without its query waits in a table and is tried again.\n"
LONG = " ".join(["A", *["word"] * 30]) + ".\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(SHORT)
    (tmp_path / "docs/page.md").write_text(SHORT * 10)
    return tmp_path


def test_the_project_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert prose.main() == 0, capsys.readouterr().out


def test_long_sentences_are_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prose.main(str(project)) == 0
    (project / "docs/page.md").write_text(SHORT * 10 + LONG * 2)
    assert prose.main(str(project)) == 1
    assert capsys.readouterr().out.startswith("docs/page.md: 9% of its sentences have 28 words or more")
    (project / "docs/page.md").write_text(
        "A sentence of that many words is read, and then another time, to its very end.\n" * 9
    )
    assert prose.main(str(project)) == 0
    (project / "docs/page.md").write_text(
        "It is that a sentence of so many words has to be read at least twice before the end.\n" * 9
    )
    assert prose.main(str(project)) == 1
    assert "half of its sentences have more than 19 words" in capsys.readouterr().out


def test_a_word_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "docs/page.md").write_text(f"{SHORT}It is recko" + "ned for ev" + "er.\n")
    assert prose.main(str(project)) == 1
    assert capsys.readouterr().out.splitlines() == [
        "docs/page.md:2: 'recko" + "ned': write count, compute",
        "docs/page.md:2: 'for ev" + "er': write indefinitely",
    ]


def test_code_is_no_prose(project: Path) -> None:
    word = "recko" + "ned"
    code = f"```sh\n{LONG}{word}\n```\n\n    {word} {LONG}\nUse `{word}` and [this]({word}.md).\n<!-- {word} -->\n"
    (project / "docs/page.md").write_text(SHORT + code)
    assert prose.main(str(project)) == 0


def test_what_a_sentence_is() -> None:
    text = "# A head\nOne is here. Two, as `x.y. Z`, is here:\n- Three\n  goes on.\n\n"
    page = f"{text}| a b c d | e |\n| --- | --- |\n| f | g |\n"
    assert prose.sentences(page) == [
        "A head", "One is here.", "Two, as `code`, is here:", "Three goes on.", "a b c d", "e", "f", "g",
    ]  # fmt: skip


def test_all_pages_together_have_a_limit(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prose, "MOST", 100)
    assert prose.main(str(project)) == 1
