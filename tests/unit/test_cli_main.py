"""How the command line ends: with the right code, and with nothing left that an error held."""

from __future__ import annotations

import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clickjoin import __version__
from clickjoin.cli import main as cli
from clickjoin.model.errors import BatchError, ConfigError

ROOT = Path(__file__).parents[2]


class Held:
    """Like a DataFrame over Spark Connect: it must not live until the interpreter's end."""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (lambda: ConfigError("no", remedy="yes"), 2),
        (lambda: BatchError("no", remedy="yes"), 3),
        (lambda: SystemExit(1), 1),
        (KeyboardInterrupt, 130),
        (lambda: ZeroDivisionError("one of ours"), 1),
    ],
)
def test_nothing_that_an_error_held_is_left(
    monkeypatch: pytest.MonkeyPatch, error: Callable[[], BaseException], code: int
) -> None:
    kept: list[weakref.ref[Held]] = []

    def fail(**_: Any) -> None:
        held = Held()
        kept.append(weakref.ref(held))
        try:
            raise error()
        except BaseException as caught:
            round_ = [held, caught]  # a frame that its own error refers to
            round_.append(round_)
            raise

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == code
    assert end.value.__context__ is None
    assert kept[0]() is None


def test_an_unknown_error_is_shown_whole(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(**_: Any) -> None:
        raise ZeroDivisionError("one of ours")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit):
        cli.main()
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "ZeroDivisionError: one of ours" in shown


def test_it_says_its_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["clickjoin", "--version"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    assert capsys.readouterr().out == f"clickjoin {__version__}\n"


def test_help_waits_for_no_heavy_library() -> None:
    script = "import sys; import clickjoin.cli.main; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": f"{ROOT}/spark_apps"}, capture_output=True)
    assert "clickjoin" in (loaded := set(done.stdout.decode().split())), done.stderr
    assert not loaded & {"pyspark", "pyarrow", "pandas", "numpy", "deltalake", "great_expectations"}
