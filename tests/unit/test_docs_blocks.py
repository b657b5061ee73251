"""The check of code blocks in `make check`: what a test does not run is found, whatever its language."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks import blocks

PAGE = "# A page\nCode:\n\n```python\nprint(1)\n```\n"
TEST = '(text,) = code("page.md", "python")\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in (("README.md", "```sh\nmake\n```\n"), ("docs/page.md", PAGE), ("tests/test_page.py", TEST)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "docs/quick-start.md").write_text("None here.\n")
    return tmp_path


def test_the_project_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert blocks.main() == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ("```python", "```", "page.md:4: language '': write one of console, csv"),
        ("```python", "```perl", "page.md:4: language 'perl'"),
        ("```python", "```sql", "page.md: 1 blocks of sql, and tests take 0"),
        ("```python", "   ```python", "page.md: a fence starts at a line's start"),
        ("```python", "```python linenums=1", "page.md: a fence starts at a line's start"),
        ("Code:", "```python\nprint(2)\n```", "page.md: 2 blocks of python, and tests take 1"),
        ("Code:\n", "Code:\n\n    print(2)\n", "page.md: 'print(2)' begins a block that is indented"),
        ("Code:\n", "    print(2)\n", "page.md: 'print(2)' begins a block that is indented"),
        ("```python", "<!-- not run: never -->\n```python", "page.md:5: say why it is not run"),
        ("Code:\n", "<!-- not run: it takes minutes -->\n```sh\nmake\n```\n" * 21, "21 blocks are not run; 20 may"),
    ],
)
def test_what_is_refused(project: Path, capsys: pytest.CaptureFixture[str], was: str, now: str, message: str) -> None:
    assert blocks.main(project) == 0
    assert capsys.readouterr().out == "Code blocks of the documentation: 2 run\n"
    (project / "docs/page.md").write_text(PAGE.replace(was, now, 1))
    assert blocks.main(project) == 1
    assert message in capsys.readouterr().out


@pytest.mark.parametrize(
    "now", ["```text", "```console", "<!-- not run: it needs a cluster -->\n```python", "```yaml", "1. One\n\n   Two"]
)
def test_what_needs_no_test(project: Path, now: str) -> None:
    (project / "tests/test_page.py").write_text("")
    assert blocks.main(project) == 1
    if now.startswith("1."):
        (project / "docs/page.md").write_text(f"{now}\n")
    else:
        (project / "docs/page.md").write_text(PAGE.replace("```python", now))
    assert blocks.main(project) == 0


def test_what_a_test_takes() -> None:
    page = "consumers.md"
    assert len(blocks.code(page, "python", 7)) == 7
    with pytest.raises(ValueError, match=r"consumers.md: 7 blocks of python, of which this test takes 2"):
        blocks.code(page, "python", 2)
