"""spark-submit for real: the same app, without a server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from clickjoin.errors import ConfigError
from clickjoin_airflow.job import Job, runner
from tests.airflow.real.logs import Logs

pytestmark = [pytest.mark.spark, pytest.mark.slow]
EXTRA = {"mode": "submit", "master": "local[2]"}


def test_a_join(tmp_path: Path, write_pipeline: Callable[..., Path]) -> None:
    config = write_pipeline(tmp_path, "clicks")
    logs, said = Logs(tmp_path, "clicks"), list[str]()
    for _ in range(3):
        logs.click(logs.query())
    summary = runner(EXTRA).run(Job("join", str(config), "main", 1.0, "dag/run/1"), said.append)
    assert (summary["batches"], summary["joined"]) == (1, 3)
    assert any("join 1: " in line for line in said)
    logs.wait(0)


def test_a_wrong_adapter(tmp_path: Path, write_pipeline: Callable[..., Path]) -> None:
    config = write_pipeline(tmp_path, "clicks", adapter="no_such_module:Adapter")
    with pytest.raises(ConfigError, match="no_such_module:Adapter: cannot be imported"):
        runner(EXTRA).run(Job("join", str(config), "main", 1.0, "dag/run/1"), lambda _: None)
