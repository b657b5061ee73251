"""One table: what is asked of the join, and what one run of the benchmarks has found.

PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.goals benchmarks/results/whole
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bootstrap import ROOT

Found = Mapping[str, Any]
S3, KAFKA = "clickjoin, from S3 to S3", "clickjoin, from topics of Kafka"
MEMORY = ("throughput", "throughput-5M", "nexmark", "flatness", "latency", "catchup", "cluster", "many")
OURS = ("driver", "executors", "workers", "master", "Python workers", "client")  # as benchmarks.memory names them


@dataclass(frozen=True)
class Goal:
    """What is asked: of which benchmark's result, a figure, and the least or the most that it may be.

    `what` may name the `fewest` and the `most` rows that there were.
    """

    what: str
    of: str
    figure: Callable[[Found], float]
    least: float | None = None
    most: float | None = None

    def row(self, found: Found | None) -> str:
        """As a line of Markdown."""
        asked = f"at least {self.least:,}" if self.least is not None else f"at most {self.most:,}"
        what = self.what.format(**_rows(found or {}))
        try:
            seen = self.figure(found or {})
        except (KeyError, ValueError):  # it did not run, or not with all contenders
            return f"| {what} | {asked} | not measured | |"
        reached = (self.least is None or seen >= self.least) and (self.most is None or seen <= self.most)
        shown = f"{seen:,.0f}" if seen >= 1000 else f"{seen:.2f}"
        return f"| {what} | {asked} | {shown} | {'yes' if reached else 'no'} |"


def _rows(found: Found) -> dict[str, str]:
    counts = [f"{int(count):,}" for count in dict(found.get("found", {})).get("fresh", ())] or [
        "the fewest",
        "the most",
    ]
    return {"fewest": counts[0], "most": counts[-1]}


def _against(peer: str) -> Callable[[Found], float]:
    def ratio(found: Found) -> float:
        each = found["found"]
        return float(each["clickjoin"]["events_a_second"] / each[peer]["events_a_second"])

    return ratio


def _times(peer: str) -> Callable[[Found], float]:
    """How many times as long as that one it took."""
    return lambda found: float(found["found"]["clickjoin"]["median"] / found["found"][peer]["median"])


def _of_files(contender: str, figure: str = "of_local") -> Callable[[Found], float]:
    return lambda found: float(found["found"][contender][figure])


def _late(part: str) -> Callable[[Found], float]:
    return lambda found: float(found["written_to_readable"][part])


def _grown(kind: str) -> Callable[[Found], float]:
    return lambda found: float(list(found["found"][kind].values())[-1]["ratio"])


def _far(found: Found) -> float:
    return float(found["found"]["1,000,000,000"]["ratio"])


def _flink(state: str) -> Callable[[Found], float]:
    return lambda found: float(found["found"][f"Flink SQL, {state} state"]["clickjoin_is_faster_by"])


def _touched(peer: str) -> Callable[[Found], float]:
    return lambda found: float(found["seconds"]["clickjoin"] / found["seconds"][peer])


def _beside(found: Found) -> float:
    few, many = found["beside"].values()
    return float(many / few)


def _retried(found: Found) -> float:
    return float(found["seconds"]["retry"]["all"] / found["seconds"]["join"]["all"])


def _rebuilt(found: Found) -> float:
    return float(found["seconds"]["rebuild"] / found["seconds"]["join"])


GOALS = (
    Goal("throughput, against a plain join and append", "throughput", _against("plain join and append"), least=2),
    Goal("… the same with 5 M clicks", "throughput-5M", _against("plain join and append"), least=2),
    Goal("… from S3 to S3, against files into a folder", "throughput-s3", _of_files(S3), least=0.8),
    Goal("… from topics of Kafka, against files", "throughput-kafka", _of_files(KAFKA), least=0.8),
    Goal(
        "… against files that hold the lines in the topics' order", "throughput-kafka", _of_files(KAFKA, "of_dealt"),
        least=0.8,
    ),
    Goal(
        "seconds for 1 M clicks, against the machine's limit (DuckDB)", "throughput", _times("DuckDB, the limit"),
        most=1.5,
    ),
    Goal("… against the stream-stream join", "throughput", _against("stream-stream join"), least=4),
    Goal(
        "… against `foreachBatch` and MERGE into an output of many rows", "throughput",
        _against("the same, into an output that holds many rows"), least=4,
    ),
    Goal("… against Flink SQL, RocksDB state", "flink", _flink("rocksdb"), least=3),
    Goal("… against Flink SQL, heap state", "flink", _flink("heap"), least=1.7),
    Goal("a fresh batch beside {most} rows, against {fewest}", "flatness", _grown("fresh"), most=1.2),
    Goal("a fresh batch beside 1 billion claims, against 1 M", "far_out", _far, most=1.2),
    Goal("a batch spread over all of the history beside {most} rows, the same", "flatness", _grown("spread"), most=2),
    Goal("a retry of 67,000 clicks, against their join as new records", "retries", _retried, most=1),
    Goal("a rebuild of a day of 1 M clicks, against their join", "rebuild", _rebuilt, most=1),
    Goal(
        "an outage of two hours at 1,000 events/s drained, seconds", "catchup",
        lambda found: float(found["drained_seconds"]), most=60,
    ),
    Goal("bytes an id on disk", "registry", lambda found: float(found["bytes_an_id"]["large"]), most=20),
    Goal("p90 through Airflow, a batch a second, seconds", "latency", _late("p90"), most=3),
    Goal("p50 through Airflow, two batches a second", "latency-500ms", _late("p50"), most=0.4),
    Goal("… p90", "latency-500ms", _late("p90"), most=0.8),
    Goal("… p99", "latency-500ms", _late("p99"), most=1.5),
    Goal("p90 of 30 pipelines at 100 events/s each, seconds", "many", lambda found: float(found["all"]["p90"]), most=3),
    Goal("… memory of all together, GB", "many", lambda found: found["memory_mb"]["together"] / 1000, most=8),
    Goal(
        "last touch of 1 M orders among 4 M touches, against DuckDB's ASOF join", "attribution",
        _touched("DuckDB, ASOF join"), most=2,
    ),
    Goal("… against a window of Spark SQL", "attribution", _touched("Spark SQL, last_value"), most=0.67),
    Goal("… of 1,000 fresh orders beside 4 M touches, against 400,000", "attribution", _beside, most=3.5),
    Goal(
        "Nexmark q20, events a second of a core", "nexmark",
        lambda found: float(found["found"]["clickjoin"]["events_a_second_of_a_core"]), least=100_000,
    ),
)  # fmt: skip


def table(folder: Path) -> str:
    """As Markdown, from the JSON files of a folder."""
    found = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.json")}
    lines = ["| | goal | this run | reached |", "| --- | --- | --- | --- |"]
    lines += [goal.row(found.get(goal.of)) for goal in GOALS]
    held = {name: _held(found[name]) for name in MEMORY if name in found}
    memory = Goal("memory of the driver and its tasks at all of these, GB", "", _most, most=4)
    return "\n".join([*lines, memory.row(held or None)])


def _most(held: Found) -> float:
    return max(held.values()) / 1000


def _held(found: Found) -> int:
    """The highest of clickjoin's own runs, MB: of each role, and then of all roles together."""
    runs = found.get("found", {})
    if isinstance(runs, list):  # a cluster's
        held = [run["memory_mb"] for run in runs if run["name"] == "clickjoin"]
    else:
        held = [found["memory_mb"] if "memory_mb" in found else runs["clickjoin"]["memory_mb"]]
    return max(sum(int(each.get(role, 0)) for role in OURS) for each in held)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.goals", description="What is asked, and what was found")
    parser.add_argument(
        "folder", type=Path, nargs="?", default=ROOT / "benchmarks/results/whole", help="with JSON files"
    )
    print(table(parser.parse_args().folder))
