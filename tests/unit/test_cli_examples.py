"""The example in each command's `--help`: every command has one, it is shown, and it can be parsed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

from clickjoin.cli.examples import EXAMPLES
from clickjoin.cli.main import app


def commands(group: str = "") -> Iterator[str]:
    """The name of every command, those of groups too."""
    root = typer.main.get_command(app)
    for name, command in sorted(getattr(root, "commands", {}).items()):
        members = getattr(command, "commands", {})
        if not members or getattr(command, "invoke_without_command", False):
            yield name
        yield from (f"{name} {member}" for member in members)


def test_every_command_has_one() -> None:
    assert sorted(commands()) == sorted(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_is_shown_and_can_be_parsed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    example = EXAMPLES[name]
    words = shlex.split(example)
    assert " ".join(words).startswith(f"{name} ")
    shown = CliRunner().invoke(app, [*name.split(), "--help"])
    assert shown.exit_code == 0
    assert f"Example: clickjoin {example}" in " ".join(shown.output.split())
    command = typer.main.get_command(app)
    for each in name.split():
        command = command.commands[each]  # type: ignore[attr-defined]
    command.make_context(name, words[len(name.split()) :])  # refuses what it does not know
