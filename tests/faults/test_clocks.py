"""Processes whose clocks are two days ahead or behind, for real: libfaketime sets them, and not the disk's."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from clickjoin.engines.arrow import ArrowTables
from clickjoin.kernel.data_file import Target, write
from clickjoin.model.txn import Txn
from clickjoin.schemas import BATCHES, REGISTRY
from clickjoin.schemas.arrow import arrow_schema
from tests.faults.checks import assert_exactly_once
from tests.faults.conftest import CONFIG, ROOT, Pipeline
from tests.sampled import some

LIBRARIES = [
    *Path("/usr/lib").glob("**/faketime/libfaketime.so.1"),
    *Path("/usr/local/lib").glob("**/libfaketime.so.1"),
]
pytestmark = pytest.mark.skipif(not LIBRARIES, reason="no libfaketime here: apt-get install faketime")
Make = Callable[[int], Pipeline]


def faked(off: str) -> dict[str, str]:
    """The environment of a process whose clock is off; files' times are what they are."""
    library = {"LD_PRELOAD": str(LIBRARIES[0]), "FAKETIME": off}
    return {**os.environ, **library, "NO_FAKE_STAT": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


COLLECT = """
import sys, datetime
from clickjoin.config import load
from clickjoin.model.errors import ClockError
from clickjoin.engines.arrow import ArrowTables
from clickjoin.gc.compaction import clean
from tests.sampled import some
pipeline = load(sys.argv[1])
print(datetime.datetime.now(), flush=True)
try:
    print(clean(pipeline, ArrowTables(pipeline.root), print))
except ClockError as error:
    sys.exit(f"refused: {error}")
"""


@pytest.mark.parametrize("off", ["+2d", "-2d"])
def test_a_collector_whose_clock_is_off(tmp_path: Path, off: str) -> None:
    """Between writing and committing: what a batch has written is there, and what it commits can be read."""
    config = tmp_path / "p.yaml"
    config.write_text(CONFIG % "4MB")
    delta, schema = ArrowTables(str(tmp_path / "lake/p")), arrow_schema(REGISTRY)
    delta.create(REGISTRY)
    delta.create(BATCHES)
    row = dict.fromkeys(schema.names) | {"event_id": "x", "bucket": "2026-11-22T2000Z", "shard": 0, "token": "t"}
    target = Target(delta.path("registry"), schema, REGISTRY.partitions, REGISTRY.statistics)
    files = write(target, pa.Table.from_pylist([row], schema=schema))
    line = [sys.executable, "-c", COLLECT, str(config)]
    env = faked(off) | {"PYTHONPATH": str(ROOT / "spark_apps")}
    done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=120, check=False)
    day = time.strftime("%Y-%m-%d", time.gmtime(time.time() + (172800 if off == "+2d" else -172800)))
    assert day in done.stdout, done.stderr
    assert done.returncode == 1, done.stderr
    assert "refused: this process's clock says" in done.stderr
    assert delta.add("registry", files, Txn("a", 1))
    assert DeltaTable(delta.path("registry")).to_pyarrow_table().num_rows == 1


@pytest.mark.parametrize("off", some(["-2d", "+2d"], 2))
def test_a_batch_sleeps_while_another_host_collects(make: Make, off: str) -> None:
    pipeline = make(600 + len(off))
    asleep = pipeline.folder / "asleep"
    asleep.touch()
    sleeper = pipeline.start("run", "--lease", "1", fault=f"looked-up:{asleep}")
    pipeline.wait_for_rows("foreign")
    time.sleep(4)
    pipeline.end(pipeline.start("gc", "--wait", "0", environment=faked(off)), 2)
    assert "s apart, more than 300 s; no file was removed" in pipeline.log.read_text()
    asleep.unlink()
    pipeline.end(sleeper, 0)
    pipeline.come_late()
    pipeline.finish()
    assert_exactly_once(pipeline)


@pytest.mark.parametrize("off", some(["+2d", "-2d"], 2))
def test_a_replica_whose_clock_is_off(make: Make, off: str) -> None:
    """It takes what is written now for what it is, and puts no retry off to another day."""
    pipeline = make(700 + len(off))
    now = int(time.time() * 1e6)
    pipeline.end(pipeline.start("run", "--lease", "8", environment=faked(off)), 0)
    assert_exactly_once(pipeline, whole=False)
    planned = DeltaTable(str(pipeline.tables / "journal")).to_pyarrow_table(columns=["at"])["at"].to_pylist()
    assert all(abs(at.timestamp() - now / 1e6) < 600 for at in planned)
    pipeline.come_late()
    pipeline.finish()
    assert_exactly_once(pipeline)
