"""This project's side: a pipeline of one stream whose registry holds so many claims, by the id alone."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import yaml

from benchmarks.engine import ENGINE
from benchmarks.one_stream.batches import BATCH, DAYS, REPEATS, Batches, days, shards_of, uuids, write_log
from clickjoin.config import load
from clickjoin.engine import Engine
from clickjoin.engines.arrow import ArrowLake
from clickjoin.engines.arrow.claims import commit_claims
from clickjoin.kernel import data_file, data_skipping
from clickjoin.kernel.id_filter import FOLDER, ids_among
from clickjoin.model.ids import claims_order
from clickjoin.model.txn import Txn
from clickjoin.schemas import REGISTRY
from clickjoin.schemas.arrow import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHARDS, NOW = 4, datetime(2026, 3, 28, 12, tzinfo=UTC)


class Window:
    """A lake whose registry holds `count` claims of random ids, of 27 days."""

    def __init__(self, spark: SparkSession, folder: Path, count: int, now: datetime = NOW) -> None:
        self.name, self.count, self.batches, self._folder = "clickjoin", count, Batches(count), folder
        self.file, self._now = folder / "messages.yaml", now
        folder.mkdir(parents=True)
        self.file.write_text(yaml.safe_dump(_pipeline(folder)), encoding="utf-8")
        log = folder / "logs/first.jsonl"  # the first records say which columns the output has
        write_log(log, ["first"], now)
        self.engine = Engine(spark, load(self.file), clock=now.timestamp)
        begun = time.perf_counter()
        for day, ids in enumerate(days(count)):
            self._claim(day, ids)
            self.batches.saw(ids)
        self.filled_in = time.perf_counter() - begun
        self.engine.join_once()

    def _claim(self, day: int, ids: pa.Array) -> None:
        at = self._now - timedelta(days=DAYS - day)
        values = {"event_id": ids, "shard": shards_of(ids, SHARDS)}
        same = {"event_time": at, "bucket": at.strftime("%Y-%m-%dT0000Z"), "token": "messages/main/join/0"}
        schema = arrow_schema(REGISTRY)
        for name, value in {**same, "outcome": "joined"}.items():
            values[name] = pa.repeat(pa.scalar(value, schema.field(name).type), len(ids))
        lake = ArrowLake(self.engine.lake.session, self.engine.lake.delta.root)
        files = data_file.write(lake.target(REGISTRY), pa.table(values), claims_order(by_id=True))
        assert commit_claims(lake, files, pa.chunked_array([], pa.string()), Txn("fill", day), by_id=True) == len(ids)

    def batch(self, turn: int) -> float:
        """Seconds of one batch, landed to settled. Errors: SystemExit where not each id is published once."""
        write_log(self._folder / f"logs/{turn}.jsonl", self.batches.next(), self._now)
        begun = time.perf_counter()
        settled = self.engine.join_once()
        seconds = time.perf_counter() - begun
        metrics = settled.metrics if settled else {}
        if (metrics.get("joined"), metrics.get("repeats")) != (BATCH - REPEATS, REPEATS):
            raise SystemExit(f"{self.count:,} claims, batch {turn}: not every id is published once: {metrics}")
        self.steps = {name: metrics[name] for name in metrics if name.startswith("seconds_")}
        return seconds

    def bytes_on_disk(self) -> dict[str, float]:
        """Bytes an id, of claims and of their filters."""
        root = Path(self.engine.lake.delta.path("registry"))
        sizes = {"claims": root.rglob("*.parquet"), "filters": (root / FOLDER).glob("*")}
        return {name: sum(file.stat().st_size for file in files) / self.count for name, files in sizes.items()}

    def bytes_in_memory(self) -> float:
        """Bytes an id that a process holds, once it has looked into every file; what is mapped is the system's."""
        delta = self.engine.lake.delta
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:  # a new one, which has no freed memory to take
            held = pool.submit(held_bytes, delta.path("registry"), list(data_skipping.paths(delta.files("registry"))))
            return held.result() / self.count

    def published(self) -> tuple[int, int]:
        """Rows of the output, and how many of them are one more than one an id."""
        ids = self.engine.lake.delta.read("joined", columns=["event_id"])["event_id"]
        return len(ids), len(ids) - len(ids.unique())


def _pipeline(folder: Path) -> dict[str, object]:
    stream = {"source": {"kind": "files", "path": str(folder / "logs/*.jsonl")}, "event_id": "messageId"}
    return {
        "pipeline": "messages",
        "engine": ENGINE,
        "lake": str(folder / "lake"),
        "stream": {**stream, "event_time": "at"},
        "registry": {"identity": "id", "retention": "28d", "bucket": "1d", "shards": SHARDS},
    }


def held_bytes(root: str, files: list[str]) -> int:
    """What looks among all files of claims leave in this process, beyond what a look into one of them does."""
    fresh = uuids(np.random.default_rng(7), BATCH)
    ids_among(root, files[:1], fresh)
    before = _anonymous()
    assert not len(ids_among(root, files, fresh).ids)
    return _anonymous() - before


def _anonymous() -> int:
    """Bytes that this process holds, without mapped files."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))
