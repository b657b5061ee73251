"""Those beside it: a set in RocksDB, and Structured Streaming's dropDuplicates with its state in RocksDB."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from benchmarks.one_stream.batches import BATCH, REPEATS, Batches, days, write_log
from bootstrap import ROOT, Problem
from bootstrap.once import exclusive, fingerprint, stamp, stamped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCK, PLACE = Path(__file__).parent / "requirements.lock", ROOT / ".run/rocksdict"
STATE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PARTITIONS = 4


class Contender(Protocol):
    """One that holds a window of `count` ids, and is given batches of fresh ones."""

    name: str
    count: int
    filled_in: float

    def batch(self, turn: int) -> float:
        """Seconds of one batch. Errors: SystemExit where a repeat is let through, or a fresh id is not."""

    def bytes_on_disk(self) -> dict[str, float]:
        """Bytes an id."""


class RocksSet:
    """Ids as keys without values: one look and one put an id, a write that is synced a batch. It publishes nothing."""

    def __init__(self, folder: Path, count: int) -> None:
        self.name, self.count, self.batches, self._folder = "a set in RocksDB", count, Batches(count), folder
        rocks = _rocksdict()
        options = rocks.Options(raw_mode=True)
        options.create_if_missing(True)
        table = rocks.BlockBasedOptions()
        table.set_bloom_filter(10, False)
        options.set_block_based_table_factory(table)
        self._new, self._sync = rocks.WriteBatch, rocks.WriteOptions()
        self._sync.sync = True
        self._held = rocks.Rdict(str(folder), options)
        begun = time.perf_counter()
        for ids in days(count):
            self.batches.saw(ids)
            self._put([bytes.fromhex(name.replace("-", "")) for name in ids.to_pylist()])
        self._held.flush()
        self.filled_in = time.perf_counter() - begun

    def batch(self, turn: int) -> float:
        """See Contender."""
        ids = self.batches.next()
        begun = time.perf_counter()
        keys = [bytes.fromhex(name.replace("-", "")) for name in ids]
        fresh = [key for key, known in zip(keys, self._held.get(keys), strict=True) if known is None]
        self._put(fresh)
        seconds = time.perf_counter() - begun
        if len(fresh) != BATCH - REPEATS:
            raise SystemExit(f"{self.name}, {self.count:,} ids, batch {turn}: {len(fresh)} are taken for fresh")
        return seconds

    def bytes_on_disk(self) -> dict[str, float]:
        """See Contender."""
        size = sum(file.stat().st_size for file in self._folder.rglob("*") if file.is_file())
        return {"set": size / self.count}

    def close(self) -> None:
        """Let go of it."""
        self._held.close()

    def _put(self, keys: list[bytes]) -> None:
        batch = self._new(raw_mode=True)
        for key in keys:
            batch.put(key, b"")
        self._held.write(batch, self._sync)


class DropDuplicates:
    """Structured Streaming: every id is state for ever, and the output a Delta table."""

    def __init__(self, spark: SparkSession, folder: Path, count: int) -> None:
        self.name, self.count, self.batches = "dropDuplicates", count, Batches(count)
        self._folder, self._next = folder, folder / "next.jsonl"
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", STATE)
        spark.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
        (folder / "logs").mkdir(parents=True)
        reader = spark.readStream.schema("messageId STRING").option("maxFilesPerTrigger", 1)
        rows = reader.json(str(folder / "logs")).dropDuplicates(["messageId"])
        writer = rows.writeStream.format("delta").option("checkpointLocation", str(folder / "state"))
        self._query = writer.outputMode("append").start(str(folder / "out"))
        begun = time.perf_counter()
        for day, ids in enumerate(days(count)):
            self.batches.saw(ids)
            self._run(f"window-{day}", ids.to_pylist())
        self.filled_in = time.perf_counter() - begun

    def batch(self, turn: int) -> float:
        """See Contender. As the query itself counts them: what it takes to find the file is left out."""
        progress = self._run(f"batch-{turn}", self.batches.next())
        published = progress["sink"]["numOutputRows"]
        found = sum(state["numRowsUpdated"] for state in progress["stateOperators"])
        if found != BATCH - REPEATS:
            raise SystemExit(f"{self.name}, {self.count:,} ids, batch {turn}: {found} fresh, {published} published")
        return float(progress["durationMs"]["triggerExecution"]) / 1000

    def bytes_on_disk(self) -> dict[str, float]:
        """See Contender."""
        size = sum(file.stat().st_size for file in (self._folder / "state/state").rglob("*") if file.is_file())
        return {"state": size / self.count}

    def close(self) -> None:
        """End the query."""
        self._query.stop()

    def _run(self, name: str, ids: list[str]) -> Any:
        write_log(self._next, ids, datetime.now(UTC))
        self._next.rename(self._folder / f"logs/{name}.json")
        seen = -1 if self._query.lastProgress is None else self._query.lastProgress["batchId"]
        while True:
            self._query.processAllAvailable()
            for progress in reversed(self._query.recentProgress):
                if progress["batchId"] > seen and progress["numInputRows"]:
                    return progress
            time.sleep(0.02)


def ensure() -> None:
    """Install the binding of RocksDB as locked, beside the product's environment, which does not need it."""
    wanted = fingerprint(LOCK, str(PLACE))
    with exclusive():
        if stamped(PLACE, wanted):
            return
        shutil.rmtree(PLACE, ignore_errors=True)
        command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
        if subprocess.run([*command, "--target", str(PLACE), "-r", str(LOCK)]).returncode:
            raise Problem("the binding of RocksDB could not be installed: see above, check network and proxy")
        stamp(PLACE, wanted)


def _rocksdict() -> Any:
    sys.path.append(str(PLACE))
    return import_module("rocksdict")
