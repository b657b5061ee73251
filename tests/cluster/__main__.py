"""Many clicks through a cluster without a shared disk, a worker killed half-way, counted by an oracle.

python -m tests.cluster --clicks 1000000
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bootstrap import Problem, jars
from bootstrap.once import exclusive
from tests.cluster.servers import NoCluster
from tests.cluster.site import Pipeline, Site, site


def main() -> int:
    """Run it; 0 if every click was joined exactly once, and a worker was killed on the way."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("--clicks", type=int, default=1_000_000)
    parser.add_argument("--batch", default="32MB", help="batch.max_bytes")
    chosen = parser.parse_args()
    with exclusive():
        jars.ensure(jars.S3_JARS, jars.S3_LOCK, jars.S3_IVY)
    try:
        with tempfile.TemporaryDirectory(prefix="clickjoin-cluster-") as folder, site(Path(folder)) as place:
            return run(place, chosen.clicks, chosen.batch)
    except (Problem, NoCluster) as error:
        print(f"no cluster: {error}")
        return 1


def run(place: Site, clicks: int, batch: str) -> int:
    """Drain the logs by the command line as the cluster's driver, and kill a worker half-way."""
    pipeline = logged(place, clicks, batch)
    env = os.environ | place.environment
    line = [sys.executable, "-m", "clickjoin.cli", "drain", "--config", str(pipeline.file), "--json", "--no-check"]
    begun = time.monotonic()
    process = subprocess.Popen([*line, "--master", place.cluster.master], env=env, stdout=subprocess.PIPE, text=True)
    try:
        killed = half_way(pipeline, process, clicks // 2)
        if killed:
            place.cluster.kill(place.cluster.workers[0])
            place.cluster.worker()
        out, _ = process.communicate()
    finally:
        process.kill()
    seconds = time.monotonic() - begun
    summary = json.loads(out) if process.returncode == 0 else {}
    verdict = pipeline.verdict()
    print(verdict.text())
    print(f"{clicks:,} clicks in {seconds:.0f} s with all starts, {summary.get('seconds', 0):.0f} s of them in "
          f"{summary.get('batches')} batches; worker killed: {'half-way' if killed else 'no'}")  # fmt: skip
    good = verdict.ok and killed and verdict.joined == verdict.clicks - verdict.pending
    print("every click exactly once" if good else "NOT as it must be")
    return 0 if good else 1


def logged(place: Site, clicks: int, batch: str) -> Pipeline:
    """A pipeline whose logs the driver reads, and the tasks of executors do the rest."""
    limits = {"max_bytes": batch, "driver_bytes": batch}
    return place.pipeline("big", clicks, batch=limits)


def half_way(pipeline: Pipeline, process: subprocess.Popen[str], rows: int) -> bool:
    """Wait until so many events are joined; False if the process ended before."""
    import deltalake

    while process.poll() is None:
        where = str(pipeline.tables / "joined")
        if deltalake.DeltaTable.is_deltatable(where):
            added = deltalake.DeltaTable(where).get_add_actions(flatten=True)
            if sum(filter(None, added["num_records"].to_pylist())) >= rows:
                return True
        time.sleep(0.3)
    return False


if __name__ == "__main__":
    sys.exit(main())
