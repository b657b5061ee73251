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

import boto3

from bootstrap import Problem, jars
from bootstrap.once import exclusive
from clickjoin.generate import Traffic, generate
from tests.cluster.servers import NoCluster
from tests.cluster.site import BUCKET, Pipeline, Site, site

# A click that was read before its query is joined by a retry, before the drain ends.
_SOON = {"first_delay": "500ms", "max_delay": "1s", "max_age": "1h", "max_attempts": 1000}


def main() -> int:
    """Run it; 0 if every click was joined exactly once, and a worker was killed on the way."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("--clicks", type=int, default=1_000_000)
    parser.add_argument(
        "--logs", choices=("s3", "local"), default="s3", help="where they lie; local ones the driver reads"
    )
    parser.add_argument("--batch", default="32MB", help="batch.max_bytes")
    chosen = parser.parse_args()
    with exclusive():
        jars.ensure(jars.S3_JARS, jars.S3_LOCK, jars.S3_IVY)
    try:
        with tempfile.TemporaryDirectory(prefix="clickjoin-cluster-") as folder, site(Path(folder)) as place:
            return run(place, chosen.clicks, chosen.batch, chosen.logs)
    except (Problem, NoCluster) as error:
        print(f"no cluster: {error}")
        return 1


def run(place: Site, clicks: int, batch: str, logs: str) -> int:
    """Drain the logs by the command line as the cluster's driver, and kill a worker half-way."""
    pipeline = logged(place, clicks, batch, logs)
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
    good = verdict.ok and killed and verdict.joined == clicks
    print("every click exactly once" if good else "NOT as it must be")
    return 0 if good else 1


def logged(place: Site, clicks: int, batch: str, logs: str) -> Pipeline:
    """A pipeline with logs on S3, which executors read, or on the driver's disk, which it reads itself."""
    folder = place.folder / "big"
    generate(folder, Traffic(clicks=clicks, queries=clicks * 2 // 5, files=8))
    if logs == "local":
        return place.over("big", str(folder), folder, batch={"max_bytes": batch, "driver_bytes": batch}, retry=_SOON)
    uploaded(place, folder)
    return place.over("big", f"s3://{BUCKET}/logs", folder, batch={"max_bytes": batch}, retry=_SOON)


def uploaded(place: Site, folder: Path) -> None:
    """Put logs into the bucket, as programs do that write there."""
    known = place.gateway.environment()
    client = boto3.client(
        "s3", endpoint_url=known["AWS_ENDPOINT_URL"], region_name=known["AWS_REGION"],
        aws_access_key_id=known["AWS_ACCESS_KEY_ID"], aws_secret_access_key=known["AWS_SECRET_ACCESS_KEY"],
    )  # fmt: skip
    for file in sorted(folder.glob("*/*.jsonl")):
        client.upload_file(str(file), BUCKET, f"logs/{file.relative_to(folder)}")


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
