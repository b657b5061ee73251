"""Two replicas by Spark's operators and `gc` beside them, on a disk where a commit takes its time to appear."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stack import Stack
from tests.faults.chaos.jobs import ROOT, Job
from tests.faults.chaos.traffic import Traffic
from tests.faults.disk import LOG, Disk
from tests.oracle import examine

RUNS = int(os.environ.get("CLICKJOIN_RUNS", "0"))
SECONDS, PATIENCE = 20.0, 400.0  # of traffic: at least, and at most until gc has rewritten buckets twice
OLD = 1200.0  # seconds: buckets of that time are closed, so gc rewrites them while late clicks are claimed in them
# Nothing is small enough for the process itself, and the adapter is one of DataFrames.
MORE = "adapter: clickjoin.examples.adapters:TypedClick\n"


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, Disk]]:
    """A Spark Connect server on such a disk."""
    disk = Disk(tmp_path_factory.mktemp("disk"))
    with Stack(tmp_path_factory.mktemp("stack"), airflow=False, env=disk.environment) as stack:
        yield stack, disk
        disk.set()


@pytest.mark.skipif(not RUNS, reason="takes minutes: make slow-disk")
@pytest.mark.parametrize("run", range(max(RUNS, 1)))
def test_each_click_is_placed_once(tmp_path: Path, slow: tuple[Stack, Disk], run: int) -> None:
    stack, disk = slow
    traffic = Traffic(tmp_path, run, "1h", age=OLD)
    text = traffic.config.read_text().replace("batch: {", "batch: {driver_bytes: 0B, ")
    traffic.config.write_text(text + MORE)
    clickjoin(traffic, "init")
    slow_down(disk)
    traffic.start()
    remote = ["--config", str(traffic.config), "--spark-connect", stack.connect_url]
    jobs = [
        Job(name, lambda line=line: [*line, *remote], tmp_path / f"{name}.log", fine=(0,), env=disk.environment)  # type: ignore[misc]
        for name, line in {
            "east": ["run", "--lease", "60", "--replica", "east"],
            "west": ["run", "--lease", "60", "--replica", "west"],
            "gc": ["gc", "--wait", "1", "--replica", "east"],
        }.items()
    ]
    until, log = time.monotonic() + PATIENCE, tmp_path / "gc.log"
    time.sleep(SECONDS)
    while jobs[-1].codes[0] < 2 or "files rewritten" not in log.read_text():
        assert time.monotonic() < until, f"gc has rewritten nothing beside the joins:\n{log.read_text()[-3000:]}"
        time.sleep(1)
    traffic.stop()
    for job in jobs:
        job.stop(120)
    disk.set()
    for name in ("east", "west"):
        clickjoin(traffic, "drain", "--no-check", "--replica", name, "--spark-connect", stack.connect_url)
    logs = (str(tmp_path / f"logs/{stream}/*") for stream in ("clicks", "queries"))
    found = examine(*logs, str(tmp_path / "lake/p"), rebuilt=True)
    print(found.text())
    assert not found.doubled | found.lost | found.extra | found.wrong | found.two_places
    assert found.joined == found.clicks == traffic.clicks
    assert not [text for job in jobs for text in job.wrong]
    assert len(disk.noted("link")) > 10
    assert disk.noted("rename") == []


@pytest.mark.skipif(not RUNS, reason="takes minutes: make slow-disk")
def test_two_drains_at_once_both_end_well(tmp_path: Path, slow: tuple[Stack, Disk]) -> None:
    """What the other is in the middle of when the ids are counted is not lost: neither ends with an error."""
    stack, disk = slow
    traffic = Traffic(tmp_path, 1, "1h", age=OLD)
    traffic.config.write_text(traffic.config.read_text().replace("batch: {", "batch: {driver_bytes: 0B, ") + MORE)
    clickjoin(traffic, "init")
    traffic.start()
    time.sleep(3)
    traffic.stop()
    slow_down(disk)
    with ThreadPoolExecutor(2) as pool:
        line = ("drain", "--spark-connect", stack.connect_url, "--replica")
        both = [pool.submit(clickjoin, traffic, *line, name) for name in ("east", "west")]
        for drain in both:
            drain.result()
    disk.set()
    found = examine(*(str(tmp_path / f"logs/{stream}/*") for stream in ("clicks", "queries")), str(tmp_path / "lake/p"))
    assert not found.doubled | found.lost | found.extra | found.wrong | found.two_places
    assert found.joined == found.clicks == traffic.clicks
    assert disk.noted("rename") == []


def slow_down(disk: Disk) -> None:
    """From now on a commit takes 0.3 s to get its name, and how it gets it is noted."""
    disk.set(disk.note("link"), disk.note("rename"), f"rename {LOG} sleep 0.3", f"link {LOG} sleep 0.3")


def clickjoin(traffic: Traffic, *line: str) -> None:
    """One command, to its end."""
    command = [sys.executable, "-m", "clickjoin.cli", line[0], "--config", str(traffic.config), *line[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT / "spark_apps")
    assert done.returncode == 0, f"{line[0]}: exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
