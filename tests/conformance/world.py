"""A pipeline whose logs grow and whose clock moves by hand, worked on through the public surface alone."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from clickjoin.config import Pipeline, load
from clickjoin.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR = 3600
# When the first events happened, seconds: some hours ago by the machine's clock, which jobs go by.
BASE = int(time.time()) // HOUR * HOUR - 6 * HOUR
_SIDE = {"event_id": "event_id", "event_time": "embedded"}
_NAMES = {"primary_id": "query_id", "primary_time": "embedded"}
_PARTNERS = {
    "primary": {"source": {"kind": "files", "path": "primary/*"}, **_SIDE},
    "foreign": {"source": {"kind": "files", "path": "foreign/*"}, **_SIDE, **_NAMES},
    "retry": {"first_delay": "10s", "backoff": 1, "max_delay": "1h", "max_age": "5s", "max_attempts": 2},
}


def event_id(host: str, seconds: float) -> str:
    """An id in Photon's form, of an event so many seconds after the first."""
    return f"{host}:1:{int((BASE + seconds) * 1_000_000)}"


def query(host: str, seconds: float = 0, **more: Any) -> dict[str, Any]:
    """A query."""
    return {"event_id": event_id(host, seconds), **more}


def click(host: str, seconds: float, of: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A click on a query."""
    return {"event_id": event_id(host, seconds), "query_id": of["event_id"], **more}


class World:
    """A pipeline in a folder.

    `fields` replace those of its file. `engines`: of replica `main`, and of other replicas and of its next process.
    """

    def __init__(self, spark: SparkSession, folder: Path, fields: Mapping[str, Any], engines: tuple[str, str]) -> None:
        self.spark, self.folder, self.now = spark, folder, float(BASE + 60)
        self.tables = folder / "lake" / "world"
        for stream in ("primary", "foreign"):
            (folder / stream).mkdir()
        self._fields = {"pipeline": "world", "lake": "lake"} | ({} if "stream" in fields else _PARTNERS)
        self._engines: dict[str, Engine] = {}
        self._engine_names = engines
        self.change(**fields)

    def change(self, **fields: Any) -> None:
        """Replace fields of the pipeline's file; every process that runs is gone."""
        self._fields |= fields
        self.pipeline, self._of_others = (
            self._written(name, engine) for name, engine in zip(("main", "others"), self._engine_names, strict=True)
        )
        self.forget_processes()

    def _written(self, name: str, engine: str) -> Pipeline:
        file = self.folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump(self._fields | {"engine": engine}), encoding="utf-8")
        return load(file)

    def engine(self, replica: str = "main") -> Engine:
        """A replica's running process; begun where there is none."""
        if replica not in self._engines:
            self._engines[replica] = self.begin(replica)
        return self._engines[replica]

    def begin(self, replica: str = "main") -> Engine:
        """A new process of a replica, beside whatever runs."""
        pipeline = self.pipeline if replica == "main" else self._of_others
        return Engine(self.spark, pipeline, replica, clock=lambda: self.now)

    def end(self, replica: str = "main") -> None:
        """A replica's process is gone: the next one is new, and of the other engine where there are two."""
        self._engines.pop(replica, None)
        if replica == "main" and len(set(self._engine_names)) > 1:
            self._engine_names = self._engine_names[::-1]
            self.change()

    def forget_processes(self) -> None:
        """Every process is gone."""
        self._engines.clear()

    def work(self, replica: str = "main") -> None:
        """Carry through all that there is and all that is due."""
        engine = self.engine(replica)
        engine.finish_redrive()
        while engine.join_once() or engine.retry_once():
            pass

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
