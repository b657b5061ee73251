"""Backups of a lake that two replicas join into; one is put back under a replica that sleeps through it."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from clickjoin.backup.manifest import backups
from tests.faults.checks import assert_exactly_once
from tests.faults.conftest import Pipeline
from tests.oracle import examine
from tests.sampled import in_full

Make = Callable[[int], Pipeline]


def keep(pipeline: Pipeline, *more: str) -> subprocess.Popen[bytes]:
    """A backup, by the command line."""
    return pipeline.start("backup", "--to", str(pipeline.folder / "backups"), *more)


def wait_for_failed_batch(pipeline: Pipeline) -> None:
    """Until a process has dropped a batch since the restore."""
    end = time.monotonic() + 90
    while "batch failed (" not in pipeline.log.read_text().rpartition("restored: ")[2]:
        assert time.monotonic() < end, pipeline.log.read_text()[-6000:]
        time.sleep(0.2)


def assert_one_moment(pipeline: Pipeline, folder: Path) -> None:
    """The oracle finds nothing in a backup that no crash could have left: its tables lie open."""
    logs = pipeline.folder / "logs"
    found = examine(str(logs / "clicks/*"), str(logs / "queries/*"), str(folder))
    assert not found.doubled | found.extra | found.wrong | found.two_places, found.text()


@in_full
def test_two_replicas_join_while_backups_are_taken(make: Make) -> None:
    pipeline, rng = make(501), random.Random(8)
    pair = [pipeline.start("run", "--replica", name) for name in ("east", "west")]
    pipeline.wait_for_rows("joined")
    pipeline.end(keep(pipeline), 0)
    pipeline.come_late()
    killed = keep(pipeline)
    time.sleep(rng.uniform(0.5, 3))
    killed.kill()
    killed.wait()
    pipeline.end(keep(pipeline), 0)
    taken = backups(pipeline.folder / "backups/p")
    for folder in taken:
        assert_one_moment(pipeline, folder)
    pair[1].send_signal(signal.SIGSTOP)
    pair[0].kill()
    pair[0].wait()
    back = ("--from", str(pipeline.folder / "backups"), "--at", taken[0].name, "--force")
    killed = pipeline.start("restore", *back, fault="restore-put-aside")
    assert killed.wait(timeout=150) == -signal.SIGKILL
    pipeline.end(pipeline.start("drain", "--replica", "east"), 2)  # no empty lake is begun
    pipeline.end(pipeline.start("restore", *back), 0)
    assert_exactly_once(pipeline, whole=False)
    pair[1].send_signal(signal.SIGCONT)
    # By the restore's mark, or by files that were not there when the server looked for them.
    wait_for_failed_batch(pipeline)
    pair[1].kill()  # it has dropped its batch, and goes on from what was restored
    pair[1].wait()
    assert_exactly_once(pipeline, whole=False)
    for name in ("east", "west"):
        pipeline.end(pipeline.start("drain", "--no-check", "--replica", name), 0)
    assert_exactly_once(pipeline, replicas=2)
    aside = next(pipeline.disk.glob("p.put-aside-*"))
    pipeline.end(pipeline.start("compare", "--aside", f"{pipeline.lake}/{aside.name}"), 0)
