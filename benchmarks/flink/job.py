"""Flink's side: runs in its own environment, and imports nothing of the product's or of the benchmarks'.

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


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Run one streaming job on bounded tables to its end.

    `order`: SQL `before` (a list) and `insert`; `settings` of Flink's; folder `work`; `port` for its own API. Returns
    `seconds` from the first statement until the job has ended and all is committed, and `progress`: how many lines had
    left the sources at which of these seconds.
    """
    start = time.perf_counter()
    settings = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(_settings(order)).build()
    tables = TableEnvironment.create(settings)
    for statement in order["before"]:
        tables.execute_sql(statement)
    over = threading.Event()
    progress: list[tuple[float, int]] = []
    watch = threading.Thread(target=_watch, args=(order["port"], start, progress, over), daemon=True)
    watch.start()
    try:
        tables.execute_sql(order["insert"]).wait()
        seconds = time.perf_counter() - start
    finally:
        over.set()
        watch.join()
    return {"seconds": seconds, "progress": progress}


def _settings(order: dict[str, Any]) -> Configuration:
    settings = {
        "parallelism.default": "2",
        "execution.checkpointing.interval": CHECKPOINT,
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "execution.checkpointing.storage": "filesystem",
        "execution.checkpointing.dir": f"file://{order['work']}/checkpoints",
        "execution.checkpointing.incremental": "true",
        "io.tmp.dirs": f"{order['work']}/local",
        "pipeline.object-reuse": "true",
        "rest.bind-address": "127.0.0.1",
        "rest.address": "127.0.0.1",
        "rest.bind-port": str(order["port"]),
        "jobmanager.bind-host": "127.0.0.1",
        "taskmanager.bind-host": "127.0.0.1",
        "metrics.fetcher.update-interval": "200",
    }
    configuration = Configuration()
    for key, value in (settings | order["settings"]).items():
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
