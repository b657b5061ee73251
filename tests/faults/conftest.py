"""A Spark Connect server for the folder, pipelines with awkward logs, and processes that are killed on the way."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from deltalake import DeltaTable

from stack import Stack
from tests.s3.fixtures import gateway as gateway
from tests.s3.fixtures import lakes as lakes

ROOT = Path(__file__).resolve().parents[2]
START = 1_700_000_000_000_000
CONFIG = """
pipeline: p
engine: arrow
lake: ./lake
primary: {source: {kind: files, path: "./logs/queries/*.jsonl"}, event_id: event_id, event_time: embedded}
foreign: {source: {kind: files, path: "./logs/clicks/*.jsonl"}, event_id: event_id, event_time: embedded,
          primary_id: query_id, primary_time: embedded}
registry: {retention: 3650d, bucket: 1h, shards: 2}
retry: {first_delay: 500ms, backoff: 1, max_delay: 1s, max_age: 1h, max_attempts: 1000}
batch: {max_events: 40, max_bytes: 1MB, lease: 10s, driver_bytes: %s}
"""


@dataclass
class Pipeline:
    """A pipeline in a folder: 60 clicks on 50 queries, some twice, some broken, some before their query.

    `lake`: as its file names it; `disk`: the folder that its files are seen in.
    """

    folder: Path
    remote: str
    lake: str
    disk: Path
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.folder / "processes.log"

    @property
    def tables(self) -> Path:
        """The folder of its tables."""
        return self.disk / "p"

    @property
    def config(self) -> Path:
        return self.folder / "p.yaml"

    def write(self, seed: int, engine: str) -> None:
        rng = random.Random(seed)
        queries = [f"10.0.0.1:7:{START + n * 90_000_000 + seed}" for n in range(50)]
        clicks = [
            (f"10.0.0.2:9:{START + rng.randrange(4_500) * 1_000_000 + n}", rng.choice(queries)) for n in range(60)
        ]
        lines = [json.dumps({"event_id": click, "query_id": query}) for click, query in clicks]
        lines += [*rng.sample(lines, 6), "{broken", '{"query_id": "x"}']
        rng.shuffle(lines)
        self.late = [json.dumps({"event_id": query, "text": "late"}) for query in queries[40:]]
        self.append("queries/a.jsonl", [json.dumps({"event_id": query, "text": "q"}) for query in queries[:40]])
        self.append("clicks/a.jsonl", lines[:40])
        self.append("clicks/b.jsonl", lines[40:])
        # Every other pipeline's logs are parsed by Spark's workers, those of the rest by the process that is killed.
        text = CONFIG.replace("./lake", self.lake).replace("engine: arrow", f"engine: {engine}")
        self.config.write_text(text % ("0B" if seed % 2 else "4MB"))

    def append(self, name: str, lines: list[str]) -> None:
        path = self.folder / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as log:
            log.write("".join(f"{line}\n" for line in lines))

    def come_late(self) -> None:
        """The queries that some clicks wait for are written now."""
        self.append("queries/late.jsonl", self.late)

    def start(
        self, command: str, *options: str, fault: str = "", environment: Mapping[str, str] = os.environ
    ) -> subprocess.Popen[bytes]:
        env = {**environment, "CLICKJOIN_FAULT": fault, "PYTHONPATH": str(ROOT / "spark_apps")}
        env["CLICKJOIN_SPARK_CONNECT"] = self.remote  # not an option: some commands need no Spark
        line = [sys.executable, "-m", "clickjoin.cli", command, "--config", str(self.config)]
        with self.log.open("a") as log:
            log.write(f"--- {command} {options} fault={fault}\n")
            log.flush()
            process = subprocess.Popen([*line, *options], env=env, stdout=log, stderr=subprocess.STDOUT)
        self.started.append(process)
        return process

    def wait_for_plan(self) -> None:
        """Until a first batch is planned."""
        self._until("journal", lambda table: table.version() > 0)

    def wait_for_rows(self, name: str) -> None:
        """Until a table holds rows."""
        self._until(name, lambda table: table.to_pyarrow_dataset().count_rows() > 0)

    def _until(self, name: str, what: Callable[[DeltaTable], bool]) -> None:
        path, end = str(self.tables / name), time.monotonic() + 90
        while not (DeltaTable.is_deltatable(path) and what(DeltaTable(path))):
            assert time.monotonic() < end, f"nothing in {name}\n{self.log.read_text()[-6000:]}"
            time.sleep(0.2)

    def end(self, process: subprocess.Popen[bytes], *expected: int) -> None:
        """Wait for a process to end, with one of the expected exit codes."""
        code = process.wait(timeout=150)
        assert code in expected, f"exit code {code}\n{self.log.read_text()[-6000:]}"

    def finish(self) -> None:
        """Drain until nothing waits, in a process that nothing disturbs, and let it count every id."""
        self.end(self.start("drain", "--check"), 0)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, lakes: Path | None) -> Iterator[Stack]:
    """A Spark Connect server of this folder's own, which finds the lakes' S3 server in its environment."""
    with Stack(tmp_path_factory.mktemp("stack"), airflow=False) as stack:
        yield stack


@pytest.fixture
def make(tmp_path: Path, server: Stack, lakes: Path | None) -> Iterator[Callable[..., Pipeline]]:
    """Makes pipelines, and leaves no process of theirs behind."""
    made: list[Pipeline] = []

    def build(seed: int, engine: str = "arrow") -> Pipeline:
        folder = tmp_path / str(seed)
        place, disk = str(folder / "lake"), folder / "lake"
        if lakes:
            disk = lakes / tmp_path.name / str(seed)
            place = f"s3://{disk.relative_to(lakes.parent)}"
        made.append(Pipeline(folder, server.connect_url, place, disk))
        made[-1].write(seed, engine)
        return made[-1]

    yield build
    for process in (process for pipeline in made for process in pipeline.started):
        process.kill()
        process.wait()
