"""A pipeline to try things on: its logs, its lake, a clock that is set by hand, and its tables as plain rows."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from clickjoin.batch import run_batch
from clickjoin.config import load
from clickjoin.engine import Engine
from clickjoin.engines.context import Context
from clickjoin.model import failpoint
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.ids import MICROS
from clickjoin.registry.boundary import load_bounds
from clickjoin.registry.shards import load_timeline
from clickjoin.report.accounts import account, kept_since
from clickjoin.report.status import replicas
from clickjoin.retry.pending import open_rows
from clickjoin.schemas import ALL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from clickjoin.engines import port

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
# Read from the machine's clock, or measured: no two runs agree on them.
_UNSTABLE = {"at", "published_at", "landed_at", "planned_at", "settled_at", "added_at"}


def event_id(host: str, seconds: float) -> str:
    """An id in Photon's form, of an event so many seconds after noon."""
    return f"{host}:1:{int((NOON + seconds) * MICROS)}"


def query(host: str, seconds: float = 0, **more: Any) -> dict[str, Any]:
    """A query of host `host`, seconds after noon."""
    return {"event_id": event_id(host, seconds), **more}


def click(host: str, seconds: float, of: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A click on a query."""
    return {"event_id": event_id(host, seconds), "query_id": of["event_id"], **more}


class Clock:
    """Stands still until it is moved."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Lake(NamedTuple):
    """Where a bench's lake lies: as its pipeline's file says it, and where its files are found on disk."""

    place: str
    disk: Path


class Bench:
    """A pipeline in a folder. `fields` replace those of its file, one level deep; `first`: clicks of its log."""

    def __init__(self, spark: SparkSession, folder: Path, fields: Mapping[str, Any], lake: Lake | None = None) -> None:
        lake = lake or Lake("lake", folder / "lake")
        self.disk = lake.disk / "bench"  # the tables' folders
        self.spark, self.folder, self.clock = spark, folder, Clock(NOON + 60)
        for stream in ("primary", "foreign"):
            (folder / stream).mkdir()
        self.file = folder / "bench.yaml"
        own = {name: value for name, value in fields.items() if name != "first"}
        self.file.write_text(yaml.safe_dump(_file({"lake": lake.place, **own})), encoding="utf-8")
        self.clicks(*fields.get("first", ()))
        self.pipeline = load(self.file)
        self.engine = self.replica("main")

    def on_disk(self, place: str) -> Path:
        """Where the files of a place in the lake are found."""
        return self.disk / place.removeprefix(f"{self.pipeline.root}/")

    def reload(self) -> None:
        """Take up what its file says now."""
        self.pipeline = load(self.file)
        self.engine = self.replica("main")

    def replica(self, name: str, spark: SparkSession | None = None) -> Engine:
        """A running copy, as new as after a restart; on the same session unless another is given."""
        return Engine(spark or self.spark, self.pipeline, name, clock=self.clock)

    @contextmanager
    def kept(self, copy: Path) -> Iterator[None]:
        """Put lake, logs and clock back at the end; `copy`: a new folder. A log stays the file (inode) that it was."""
        now = self.clock.now
        logs = {path: path.read_bytes() for path in self._logs()}
        shutil.copytree(self.disk, copy)
        self.engine = self.replica("main")
        yield
        self.clock.now = now
        self.put_back(copy)
        for path in self._logs():
            if path in logs:
                path.write_bytes(logs[path])
            else:
                path.unlink()
        self.engine = self.replica("main")

    def put_back(self, copy: Path) -> None:
        """The lake is what was copied to a folder; an engine from before is of no use."""
        shutil.rmtree(self.disk)
        shutil.copytree(copy, self.disk)
        # Spark keeps what it knows of a log, and looks at later versions alone: these are earlier ones.
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]

    def _logs(self) -> list[Path]:
        return [path for stream in ("primary", "foreign") for path in (self.folder / stream).iterdir()]

    def queries(self, *records: Any) -> None:
        """Append records to the log of queries."""
        self._write("primary", records)

    def clicks(self, *records: Any) -> None:
        """Append records to the log of clicks."""
        self._write("foreign", records)

    def _write(self, stream: str, records: tuple[Any, ...]) -> None:
        lines = (record if isinstance(record, str) else json.dumps(record) for record in records)
        with (self.folder / stream / "0.jsonl").open("a", encoding="utf-8") as log:
            log.writelines(f"{line}\n" for line in lines)

    def rest(self, seconds: float) -> None:
        """Let the logs be so old."""
        then = time.time() - seconds
        for path in self._logs():
            os.utime(path, (then, then))

    def join(self) -> dict[str, Any]:
        """Run one join batch; returns its counts that are not zero."""
        settled = self.engine.join_once()
        assert settled, "there was nothing to join"
        return counts(settled.metrics)

    def retry(self, after: float = 0) -> dict[str, Any]:
        """Run one retry batch, some seconds later; returns its counts that are not zero."""
        self.clock.now += after
        settled = self.engine.retry_once()
        assert settled, "nothing was due"
        return counts(settled.metrics)

    def context(self, plan: BatchPlan, engine: Engine | None = None) -> Context:
        """What a copy of a batch works with."""
        engine = engine or self.engine
        delta = engine.lake.delta
        return Context(self.pipeline, engine.lake, plan, engine.adapter, load_timeline(delta), *load_bounds(delta))

    def run_copy(self, plan: BatchPlan) -> Context:
        """Run a batch up to where only the journal's last word is missing, as a copy that crashes there."""
        engine = self.replica(plan.replica)
        ctx = self.context(plan, engine)
        run_batch(ctx, engine.sources)
        return ctx

    def rows(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        """A table's rows, sorted; all columns that a run does not measure, or those named."""
        table = self.engine.lake.delta.read(name)
        wanted = columns or [c for c in table.schema.names if c not in _UNSTABLE and not c.startswith("seconds_")]
        return sorted((tuple(row[c] for c in wanted) for row in table.to_pylist()), key=repr)

    def hosts(self, name: str) -> list[str]:
        """The hosts in a table's event ids, sorted; of an id that is there twice, twice."""
        return [row[0].split(":")[0] for row in self.rows(name, "event_id")]

    def places(self) -> dict[str, list[str]]:
        """Where every event is: hosts by table, without empty ones."""
        waits = sorted(row["event_id"].split(":")[0] for row in open_rows(self.engine.lake.delta))
        found = {name: self.hosts(name) for name in ("joined", "filtered", "unjoinable", "expired")}
        return {name: hosts for name, hosts in (found | {"pending": waits}).items() if hosts}

    def claims(self) -> dict[str, tuple[str, str]]:
        """Batch and outcome of each claim, by host."""
        rows = self.rows("registry", "event_id", "token", "outcome")
        return {event.split(":")[0]: (token.removeprefix("bench/"), outcome) for event, token, outcome in rows}

    def all_tables(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows of all tables."""
        return {table.name: self.rows(table.name) for table in ALL}

    def accounts(self) -> dict[str, Any]:
        """The sums, without zeros."""
        since = kept_since(self.pipeline, self.engine.lake, datetime.fromtimestamp(self.clock.now, UTC))
        found = account(self.engine.lake, replicas(self.engine.lake.delta), since, self.pipeline.repeats).to_dict()
        return {name: value for name, value in found.items() if value}


@contextmanager
def crash_at(lake: port.Lake, table: str, *, after: bool) -> Iterator[None]:
    """What is done inside ends, as if killed, just before or just after the table is committed to."""

    where = f"{'after' if after else 'before'}-commit:{Path(lake.delta.path(table)).name}"

    def stop(point: str) -> None:
        if point == where:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoint, "reach", stop)
        with pytest.raises(KeyboardInterrupt):
            yield


def counts(metrics: Mapping[str, Any]) -> dict[str, int]:
    """The counts of a batch that are not zero."""
    names = ("primary_in", "events_in", "joined", "repeats", "wasted", "pending", "unjoinable", "expired", "filtered")
    names += ("quarantined", "conflict_reruns")
    return {name: metrics[name] for name in names if metrics[name]}


def _file(fields: Mapping[str, Any]) -> dict[str, Any]:
    engine = {"engine": os.environ.get("CLICKJOIN_TEST_ENGINE", "arrow")}
    whole: dict[str, Any] = engine | {
        "pipeline": "bench",
        "primary": {
            "source": {"kind": "files", "path": "primary/*"},
            "event_id": "event_id",
            "event_time": "embedded",
        },
        "foreign": {
            "source": {"kind": "files", "path": "foreign/*"},
            "event_id": "event_id",
            "event_time": "embedded",
            "primary_id": "query_id",
            "primary_time": "embedded",
        },
        "retry": {"first_delay": "10s", "backoff": 2, "max_delay": "1h", "max_age": "60s", "max_attempts": 3},
    }
    if "stream" in fields:  # it has no partner, and nothing that waits for one
        whole = engine | {"pipeline": "bench"}
    for name, value in fields.items():
        whole[name] = {**whole.get(name, {}), **value} if isinstance(value, Mapping) else value
    return whole
