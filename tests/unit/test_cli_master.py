"""Where a command finds Spark: a server, or a cluster that it is the driver of, and never both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clickjoin.cli.base import connected
from clickjoin.config import load
from clickjoin.spark import session

MASTER, SERVER = "spark://head:7077", "sc://localhost:15002"


class Asked(Exception):
    """Which of the two was asked for."""


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def server(url: str) -> None:
        raise Asked(url)

    def driver(*, s3: bool, master: str) -> None:
        raise Asked(master)

    monkeypatch.setattr(session, "connect", server)
    monkeypatch.setattr(session, "in_process", driver)
    for name in ("CLICKJOIN_SPARK_CONNECT", "CLICKJOIN_SPARK_MASTER"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("command", ["run", "drain", "gc", "verify"])
def test_both_are_refused(run: Callable[..., Any], file: Path, command: str) -> None:
    code, out, err = run(command, "-c", file, "--master", MASTER, "--spark-connect", SERVER)
    assert (code, out) == (2, "")
    assert "--spark-connect (CLICKJOIN_SPARK_CONNECT) and --master (CLICKJOIN_SPARK_MASTER) are both given" in err


def test_so_are_both_of_the_environment(run: Callable[..., Any], file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLICKJOIN_SPARK_CONNECT", SERVER)
    monkeypatch.setenv("CLICKJOIN_SPARK_MASTER", MASTER)
    code, _, err = run("drain", "-c", file)
    assert code == 2
    assert "are both given" in err


@pytest.mark.parametrize(
    ("variable", "given", "found"),
    [
        (("CLICKJOIN_SPARK_CONNECT", SERVER), ("--master", MASTER), MASTER),
        (("CLICKJOIN_SPARK_MASTER", MASTER), ("--spark-connect", SERVER), SERVER),
        (("CLICKJOIN_SPARK_MASTER", MASTER), (), MASTER),
        (("CLICKJOIN_SPARK_CONNECT", SERVER), (), SERVER),
        (("HOME", "/"), ("--master", MASTER), MASTER),
    ],
)
def test_the_command_line_goes_before_the_environment(
    run: Callable[..., Any], file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    variable: tuple[str, str], given: tuple[str, ...], found: str,
) -> None:  # fmt: skip
    monkeypatch.setenv(*variable)
    code, _, err = run("drain", "-c", file, *given)
    assert code == 1
    assert err.rstrip().endswith(f"Asked: {found}")


def test_in_this_process_it_is_started_when_it_is_needed(file: Path) -> None:
    found = connected(("", ""), load(file))
    assert found.started is None
    with pytest.raises(Asked):
        found()
