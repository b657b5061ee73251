"""The jobs that a scheduler runs: the same code from the CLI, from Airflow over Spark Connect, under spark-submit."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickjoin.config import Pipeline, load
from clickjoin.engine import Engine, Settled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Say = Callable[[str], None]
_COUNTS = (
    "primary_in",
    "events_in",
    "joined",
    "repeats",
    "wasted",
    "pending",
    "unjoinable",
    "expired",
    "filtered",
    "quarantined",
    "conflict_reruns",
)


class Summary:
    """What a run of batches did: counts, the newest latency and backlog, and problems of the sources."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self.batches = 0
        self.counts = dict.fromkeys(_COUNTS, 0)
        self._newest: dict[str, Any] = {}

    def add(self, settled: Settled) -> None:
        """Take in a settled batch, and say a line about it."""
        row = dict(settled.metrics)
        self.batches += 1
        for name in _COUNTS:
            self.counts[name] += int(str(row[name] or 0))
        self._newest |= {key: row[key] for key in ("backlog_events", "problems") if row["sequence"] == "join"}
        self._newest |= {"latency_p90": row.get("latency_p90") or self._newest.get("latency_p90")}
        self._say(line(row))

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain data, fit for JSON and for Airflow's XCom."""
        problems = json.loads(self._newest.get("problems") or "[]")
        return {
            "batches": self.batches,
            **self.counts,
            "backlog_events": self._newest.get("backlog_events", 0),
            "latency_p90": self._newest.get("latency_p90"),
            "problems": problems,
        }


def line(row: dict[str, Any]) -> str:
    """One line about a batch, for a log."""
    steps = " ".join(f"{n} {row[f'seconds_{n}']:.2f}" for n in ("plan", "land", "lookup", "claim", "publish", "settle"))
    counts = " ".join(f"{name} {row[name]}" for name in _COUNTS if row[name])
    moment = datetime.now(UTC).strftime("%H:%M:%S")
    what = f"{moment} {row['sequence']} {row['batch']}: {counts or 'nothing'}"
    return f"{what} | seconds: {steps} | backlog {row['backlog_events']}"


def join(spark: SparkSession, pipeline: Pipeline, replica: str, say: Say, lease: float | None = None) -> dict[str, Any]:
    """Work through batches of new records for the pipeline's lease (or for `lease` seconds)."""
    summary = Summary(say)
    seconds = pipeline.batch.lease if lease is None else lease
    Engine(spark, pipeline, replica).run(seconds, retries=False, done=summary.add)
    return summary.to_dict()


def retry(
    spark: SparkSession, pipeline: Pipeline, replica: str, say: Say, lease: float | None = None
) -> dict[str, Any]:
    """Try all pending events that are due, until none is."""
    summary = Summary(say)
    engine = Engine(spark, pipeline, replica)
    while item := engine.retry_once():
        summary.add(item)
    waits = engine.waiting()
    return summary.to_dict() | {"waiting": waits.all}


def redrive(
    spark: SparkSession, pipeline: Pipeline, replica: str, say: Say, lease: float | None = None
) -> dict[str, Any]:
    """Send all unjoinable events of this replica round again."""
    sent = Engine(spark, pipeline, replica).redrive()
    say(f"{sent} events sent round again")
    return {"redriven": sent}


APPS: dict[str, Callable[..., dict[str, Any]]] = {"join": join, "retry": retry, "redrive": redrive}


def submit(name: str) -> None:
    """Entry point under spark-submit: `<app>.py PIPELINE.yaml [REPLICA] [LEASE]`; prints the summary last."""
    from pyspark.sql import SparkSession

    from clickjoin.session import configured

    pipeline = load(Path(sys.argv[1]))
    replica = sys.argv[2] if len(sys.argv) > 2 else "main"
    lease = float(sys.argv[3]) if len(sys.argv) > 3 else None
    spark = configured(SparkSession.builder.appName(f"clickjoin {name} {pipeline.pipeline}").getOrCreate())
    try:
        result = APPS[name](spark, pipeline, replica, lambda text: print(text, flush=True), lease)
    finally:
        spark.stop()
    print(json.dumps(result), flush=True)
