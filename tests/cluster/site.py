"""A cluster, an S3 server that its workers reach by its address alone, and pipelines between them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import yaml

from bootstrap import ROOT
from clickjoin.generate import Traffic, generate
from stack.gateway import Gateway
from tests.cluster.bare import bare
from tests.cluster.servers import Cluster
from tests.oracle import Verdict, examine

BUCKET = "cluster"
_SECRETS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED")


@dataclass
class Site:
    """`folder` holds what the driver alone sees: logs, and lakes on its disk."""

    folder: Path
    cluster: Cluster
    gateway: Gateway

    @property
    def environment(self) -> dict[str, str]:
        """What a driver needs."""
        return self.cluster.driver() | self.gateway.environment()

    def pipeline(self, name: str, clicks: int, **fields: Any) -> Pipeline:
        """A pipeline with logs of its own, its lake on S3 unless `fields` say otherwise.

        One click in twenty finds no query: those are what a batch still has to read from executors once it has claimed.
        """
        logs = self.folder / name
        generate(logs, Traffic(clicks=clicks, queries=clicks * 2 // 5, duplicates=0.01, broken=0.002, orphans=0.05))
        return self.over(name, str(logs), logs, **fields)

    def over(self, name: str, source: str, logs: Path, **fields: Any) -> Pipeline:
        """A pipeline over logs: `source` is where it reads them, `logs` where the oracle does."""
        batch = {"max_bytes": "4MB", "driver_bytes": "4MB"}
        stream = {"event_id": "event_id", "event_time": "embedded"}
        named = {"primary_id": "query_id", "primary_time": "embedded"}
        config = {
            "pipeline": name, "engine": "arrow", "lake": f"s3://{BUCKET}/lakes", "batch": batch,
            "primary": {"source": {"kind": "files", "path": f"{source}/queries/*.jsonl"}, **stream},
            "foreign": {"source": {"kind": "files", "path": f"{source}/clicks/*.jsonl"}, **stream, **named},
            "retry": {"first_delay": "10m", "max_delay": "10m"},
        }  # fmt: skip
        file = self.folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump(config | fields))
        return Pipeline(file, logs, self.gateway.folder / "data" / BUCKET / "lakes" / name)


@dataclass(frozen=True)
class Pipeline:
    """Its file, its logs, and the folder that its tables are seen in from outside."""

    file: Path
    logs: Path
    tables: Path

    def verdict(self) -> Verdict:
        """What an oracle counts, which shares no code with the product."""
        return examine(str(self.logs / "clicks/*"), str(self.logs / "queries/*"), self.tables)

    def await_files(self, table: str, seconds: float = 120) -> None:
        """Until a table's folder holds data files, committed or not."""
        until = time.monotonic() + seconds
        while not any(self.tables.glob(f"{table}/**/*.parquet")):
            assert time.monotonic() < until, f"no files of {table} in {self.tables}"
            time.sleep(0.1)


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """A master and two workers, of which none sees the checkout's code, the logs, or what the S3 server keeps.

    Errors: NoGateway, NoCluster.
    """
    gateway = Gateway(folder / "s3")
    gateway.bucket(BUCKET)
    own = folder / "own"
    own.mkdir()
    hidden = [ROOT / "spark_apps", ROOT / "plugins", ROOT / "tests", gateway.folder, own]
    secrets = {name: value for name, value in gateway.environment().items() if name in _SECRETS}
    cluster = Cluster(folder / "cluster", hidden, bare("pyarrow", "numpy"), secrets)
    gateway.start()
    try:
        cluster.start()
        yield Site(own, cluster, gateway)
    finally:
        cluster.stop()
        gateway.kill()


def while_it_sleeps(site: Site, pipeline: Pipeline, gate: Path) -> Thread:
    """When a batch has written its files, and sleeps at a gate: replace all workers, and open the gate."""

    def work() -> None:
        try:
            pipeline.await_files("joined")
            site.cluster.replace_workers()
        finally:
            gate.unlink()

    thread = Thread(target=work)
    thread.start()
    return thread
