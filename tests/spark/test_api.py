"""The way in from Python: the quick start of docs/python.md as it stands there, and what is refused."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import clickjoin
from checks.blocks import code
from clickjoin.config.starter import STARTER
from clickjoin.config.umask import in_force
from clickjoin.generate import Traffic, generate
from clickjoin.model.errors import ClickjoinError, ConfigError
from clickjoin.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def file(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipeline's file beside logs of 400 clicks, in the folder that this process is in."""
    generate(tmp_path / "logs", Traffic(clicks=400, queries=100, orphans=0.0, late=0.0))
    file = tmp_path / "shop.yaml"
    file.write_text(STARTER.replace("engine: spark", "engine: arrow"))  # Spark is for verify alone
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "in_process", lambda **_: spark)
    return file


def test_the_quick_start(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = code("python.md", "python")
    assert len(text.splitlines()) <= 10
    exec(compile(text, "docs/python.md", "exec"), {})
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "400 joined, 0 wait for their query"
    assert "'joined': 400" in out[1]
    assert out[2] == "unknown"


def test_what_it_writes_is_private_and_the_process_stays_as_it_was(file: Path) -> None:
    seen: list[int] = []
    mask, on_signal = in_force(), signal.getsignal(signal.SIGTERM)
    shop = clickjoin.open(file, report=lambda _: seen.append(in_force()))
    assert shop.drain(check=False)["joined"] == 400
    assert shop.run(seconds=0.1)["joined"] == 0
    assert set(seen) == {0o077}
    assert (in_force(), signal.getsignal(signal.SIGTERM)) == (mask, on_signal)


def test_what_is_refused(file: Path) -> None:
    with pytest.raises(ConfigError, match="is no name of a replica"):
        clickjoin.open(file, replica="Main")
    with pytest.raises(ConfigError, match="none"):
        clickjoin.open(file.with_name("none.yaml"))
    with pytest.raises(ClickjoinError, match="no such table"):
        clickjoin.open(file).status()
