"""The contender itself: runs in Flink's own environment, and imports nothing of the product's or of the benchmarks'.

Reads one order a line (JSON: see `run`) and answers each with a line; its Java stays warm in between.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from contextlib import suppress
from typing import Any
from urllib.request import urlopen

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

CHECKPOINT = "10 s"
SOURCE = """
CREATE TABLE {name}_log (
  event_id STRING, {columns}, payload STRING,
  event_time AS TO_TIMESTAMP_LTZ(CAST(SPLIT_INDEX(event_id, ':', 2) AS BIGINT) / 1000, 3),
  seen AS PROCTIME(),
  WATERMARK FOR event_time AS event_time - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'file://{folder}/{name}', 'format' = 'json')
"""
FIRST = """
CREATE TEMPORARY VIEW {name} AS SELECT * FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY event_id ORDER BY seen ASC) AS copy FROM {name}_log
) WHERE copy = 1
"""
SINK = """
CREATE TABLE joined (
  event_id STRING, primary_id STRING, event_time TIMESTAMP_LTZ(3),
  `position` BIGINT, click_payload STRING, results BIGINT, query_payload STRING
) WITH ('connector' = 'filesystem', 'path' = 'file://{out}', 'format' = 'parquet')
"""
JOIN = """
INSERT INTO joined
SELECT c.event_id, c.query_id, c.event_time, c.`position`, c.payload, q.results, q.payload
FROM clicks c JOIN queries q ON c.query_id = q.event_id
  AND c.event_time BETWEEN q.event_time AND q.event_time + INTERVAL '2' HOUR
"""
COLUMNS = {"queries": "results BIGINT", "clicks": "query_id STRING, `position` BIGINT"}


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Join the logs of a folder. `order`: folders `logs`, `out`, `work`; `state`, `managed` (memory), `port`.

    Returns `seconds` from the first statement until the job has ended and all is committed, and `progress`: how many
    lines had left the sources at which of these seconds.
    """
    start = time.perf_counter()
    tables = TableEnvironment.create(
        EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(_settings(order)).build()
    )
    for name, columns in COLUMNS.items():
        tables.execute_sql(SOURCE.format(name=name, columns=columns, folder=order["logs"]))
        tables.execute_sql(FIRST.format(name=name))
    tables.execute_sql(SINK.format(out=order["out"]))
    over = threading.Event()
    progress: list[tuple[float, int]] = []
    watch = threading.Thread(target=_watch, args=(order["port"], start, progress, over), daemon=True)
    watch.start()
    try:
        tables.execute_sql(JOIN).wait()
        seconds = time.perf_counter() - start
    finally:
        over.set()
        watch.join()
    return {"seconds": seconds, "progress": progress}


def _settings(order: dict[str, Any]) -> Configuration:
    settings = {
        "parallelism.default": "2",
        "state.backend.type": order["state"],
        "execution.checkpointing.interval": CHECKPOINT,
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "execution.checkpointing.storage": "filesystem",
        "execution.checkpointing.dir": f"file://{order['work']}/checkpoints",
        "io.tmp.dirs": f"{order['work']}/local",
        "execution.checkpointing.incremental": "true",
        "table.exec.state.ttl": "3 h",
        "pipeline.object-reuse": "true",
        "taskmanager.memory.managed.size": order["managed"],
        "taskmanager.memory.network.min": "64mb",
        "taskmanager.memory.network.max": "64mb",
        "rest.bind-address": "127.0.0.1",
        "rest.address": "127.0.0.1",
        "rest.bind-port": str(order["port"]),
        "jobmanager.bind-host": "127.0.0.1",
        "taskmanager.bind-host": "127.0.0.1",
        "metrics.fetcher.update-interval": "200",
    }
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    return configuration


def _watch(port: int, start: float, progress: list[tuple[float, int]], over: threading.Event) -> None:
    """Note how many lines have left the sources, four times a second; Flink answers once the job runs."""
    while not over.wait(0.25):
        with suppress(OSError, ValueError, LookupError):
            job = _ask(port, "/jobs")["jobs"][0]["id"]
            parts = _ask(port, f"/jobs/{job}")["vertices"]
            lines = sum(part["metrics"]["write-records"] for part in parts if part["name"].startswith("Source"))
            progress.append((round(time.perf_counter() - start, 3), lines))


def _ask(port: int, path: str) -> Any:
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
        return json.load(answer)


def main() -> None:
    """Answer orders until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever Java prints must not come between the answers
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
