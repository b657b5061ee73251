"""The ports of every Spark that the stack or a task starts: on loopback, and deaf to who does not know the secret."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from clickjoin_airflow.job import JobRun, runner
from tests.airflow.real.live import Live
from tests.airflow.real.logs import Logs
from tests.intruder import LOOPBACK, Intruder, children, intruder, listening
from tests.sampled import in_full

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def other() -> Iterator[Intruder]:
    with intruder() as one:
        yield one


def check(pid: int, other: Intruder) -> None:
    """All of a Java process's ports are on loopback, Spark's own two among them, and none answers a stranger."""
    found = listening(pid)
    assert len(found) >= 2
    assert {address for address, _ in found} <= LOOPBACK
    said = {port: other.asks(port) for _, port in found}
    assert {port: text for port, text in said.items() if not text.startswith("refused: ")} == {}


def test_the_connect_server(live: Live, other: Intruder) -> None:
    server = next(server for server in live.stack.servers if server.name == "spark")
    check(server.pid, other)
    assert "spark.authenticate.secret" not in " ".join(psutil.Process(server.pid).cmdline())


@in_full
def test_a_submitted_job(tmp_path: Path, write_pipeline: Callable[..., Path], other: Intruder) -> None:
    config, looked = write_pipeline(tmp_path, "clicks"), list[int]()
    logs = Logs(tmp_path, "clicks")
    logs.click(logs.query())

    class Seen(Exception):
        pass

    def look(line: str) -> None:
        if line.partition(" ")[2].startswith("join 1:"):  # it works now, and for long after
            looked.extend(children("org.apache.spark.deploy.SparkSubmit", str(config)))
            check(looked[0], other)
            raise Seen

    job = JobRun("join", str(config), "main", 600.0, "dag/run/1")
    with pytest.raises(Seen):
        runner({"mode": "submit", "master": "local[2]"}).run(job, look)
    assert len(looked) == 1
