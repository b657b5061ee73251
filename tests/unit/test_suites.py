"""What `make test` runs: each test file once, and two rows that take the suites from either end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import suites


def test_every_file_is_in_one_suite() -> None:
    runs = [file for suite in suites.suites() for file in suites.files(suite)]
    left = {file for folder in suites.LEFT_OUT for file in Path(folder).rglob("test_*.py")}
    assert sorted(runs) == sorted(set(Path("tests").rglob("test_*.py")) - left)


def test_files_that_are_named_are_there() -> None:
    assert [name for name in suites.SPARK if not Path(f"tests/spark/test_{name}.py").is_file()] == []


def test_rows_meet_and_the_code_is_that_of_what_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in "abc":
        (tmp_path / f"test_{name}.py").write_text(f"def test_it():\n    assert {name!r} != 'c', 'as it must'\n")
    monkeypatch.setattr(suites, "suites", lambda: [(str(tmp_path / f"test_{name}.py"),) for name in "abc"])
    monkeypatch.setattr("sys.argv", ["suites", "-q"])
    assert suites.main() == 1
    said = capfd.readouterr().out
    assert (said.count("1 passed"), said.count("1 failed"), said.count("exit code 1")) == (2, 1, 1)
    assert said.count("as it must") >= 1
