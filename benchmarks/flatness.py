"""What history costs a batch: 10,000 clicks joined beside few and many rows of `registry` and `primary`.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.flatness --counts 1000000 10000000 [--lake s3]

Each lake is made here, with as many claims as queries over the same four days, and joined to in turns on one session:
fresh clicks, on queries of the last minute, and spread ones, both click and query anywhere in the four days, as
backfills and late retries are. No figure is printed unless every click of every batch was joined, and once. On S3, with
`--delay`, requests are counted, and each takes so many seconds more.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
from collections import Counter, defaultdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from benchmarks.engine import ENGINE
from benchmarks.folders import remove
from benchmarks.latency_machine import machine, save
from benchmarks.memory import emptied, line, watched
from benchmarks.registry import DAYS, NOON, ids
from benchmarks.store import Place, lake_at
from bootstrap import ROOT
from clickjoin.config import load
from clickjoin.engine import Engine
from clickjoin.engines.arrow import ArrowLake
from clickjoin.lake.tree import tree
from clickjoin.lake_setup import initialise
from clickjoin.model.ids import MICROS
from clickjoin.schemas import PRIMARY, REGISTRY
from clickjoin.spark.session import in_process
from demo.running import write_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

BATCH = 10_000
SPAN = DAYS * 86_400 * MICROS
END = int(NOON.timestamp()) * MICROS
MINUTE = 60 * MICROS
KINDS = ("fresh", "spread")
QUERIES, CLAIMS, CLICKS = 3, 1, {"fresh": 4, "spread": 5}  # servers, so that no id is made twice


class FilledLake:
    """A pipeline whose lake holds so many claims and queries, of so many microseconds before noon."""

    def __init__(self, spark: SparkSession, folder: Path, count: int, span: int = SPAN, lake: str = "") -> None:
        self.folder, self.count, self.span, self.step = folder, count, span, span / count
        (folder / "clicks").mkdir(parents=True)
        file = folder / "shop.yaml"
        write_pipeline(
            file, lake or folder / "lake", folder / "queries/*.jsonl", folder / "clicks/*.jsonl",
            registry={"retention": "30d", "bucket": "1h", "shards": 4}, engine=ENGINE,
        )  # fmt: skip
        self._spark, self.pipeline = spark, load(file)
        initialise(self.pipeline)
        _fill(spark, self.pipeline.root, count, span)
        self.open()

    def open(self) -> None:
        """As a new process does."""
        self.engine = Engine(self._spark, self.pipeline, clock=(NOON + timedelta(days=1)).timestamp)

    def batch(self, kind: str, turn: int) -> dict[str, float]:
        """Seconds of each step of one batch. Errors: SystemExit unless all of its clicks are joined."""
        log = self.folder / f"clicks/{kind}-{turn}.jsonl"
        log.write_text("".join(self._lines(kind, turn)), encoding="utf-8")
        settled = self.engine.join_once()
        if settled is None or settled.metrics["joined"] != BATCH:
            raise SystemExit(f"{log}: not all is joined, so there are no figures: {settled}")
        steps = {name: float(str(value)) for name, value in settled.metrics.items() if name.startswith("seconds_")}
        return {name.removeprefix("seconds_"): value for name, value in steps.items()}

    def _lines(self, kind: str, turn: int) -> list[str]:
        rng, lines = random.Random(f"{kind}{turn}"), []
        for number in range(BATCH):
            if kind == "fresh":
                at, since = END + turn * 10 * MICROS + number * 500, END - MINUTE
            else:
                at, since = END - self.span + MINUTE + rng.randrange(self.span - MINUTE), END - self.span
            row = rng.randrange(self._first(since), self._first(min(at, END)))
            click = f"10.{CLICKS[kind]}.{turn}.{number}:77:{at}"
            query = f"10.{QUERIES}.0.{row % 100}:77:{int(END - self.span + row * self.step)}"
            lines.append(json.dumps({"event_id": click, "query_id": query, "item": number}) + "\n")
        return lines

    def _first(self, since: int) -> int:
        """The first query not before a moment."""
        return min(int((since - END + self.span) / self.step), self.count - 1)

    def doubled(self) -> int:
        """Rows of the output beyond one an id."""
        found = self.engine.lake.delta.read("joined", columns=["event_id"])["event_id"]
        return len(found) - len(found.unique())


def _fill(spark: SparkSession, root: str, count: int, span: int) -> None:
    for name in ("registry", "primary"):  # begun empty with the others; these are written sorted, as gc leaves them
        tree(f"{root}/{name}").discard()
    lake, low = ArrowLake(spark, root), NOON - timedelta(microseconds=span)
    lake.create_filled(REGISTRY, ids(spark, count, low, NOON, CLAIMS), "registry")
    text = F.concat(F.lit('{"event_id":"'), "event_id", F.lit('","text":"'), F.md5("event_id"), F.lit('"}'))
    made = {"payload": text, "path": F.lit("log"), "source_partition": F.lit("g"), "replica": F.lit("main"),
            "offset": F.lit(0).cast("bigint"), "length": F.lit(100).cast("bigint"), "batch": F.lit(0).cast("bigint"),
            "landed_at": F.lit(low)}  # fmt: skip
    lake.create_filled(
        PRIMARY, ids(spark, count, low, NOON, QUERIES).withColumns(made).select(*PRIMARY.names), "primary"
    )


def measured(
    lakes: list[FilledLake], warm: int, turns: int, requests: Callable[[], Counter[str]] = Counter
) -> dict[str, Any]:
    """Medians by kind and size of lake, in seconds, and their ratio to the first lake's; requests sent, of a store."""
    seen: defaultdict[tuple[str, int], list[dict[str, float]]] = defaultdict(list)
    sent: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for turn in range(warm + turns):
        for kind in KINDS:
            for lake in lakes:
                before = requests().total()
                steps = lake.batch(kind, turn)
                sent[kind, lake.count].append(requests().total() - before)
                print(f"turn {turn}: {kind}, {lake.count:,} rows: {sum(steps.values()):.2f} s", flush=True)
                if turn >= warm:
                    seen[kind, lake.count].append(steps)
    found: dict[str, Any] = {kind: {} for kind in KINDS}
    for (kind, count), runs in seen.items():
        whole = statistics.median(sum(run.values()) for run in runs)
        steps = {name: round(statistics.median(run[name] for run in runs), 3) for name in runs[0]}
        found[kind][count] = {"seconds": round(whole, 3), "steps": steps}
        found[kind][count]["requests"] = statistics.median(sent[kind, count][warm:])
    for kind in KINDS:
        for part in found[kind].values():
            part["ratio"] = round(part["seconds"] / found[kind][lakes[0].count]["seconds"], 2)
    return found


def table(found: dict[str, Any]) -> str:
    """As Markdown."""
    steps = list(next(iter(found["fresh"].values()))["steps"])
    lines = [f"| | rows | seconds | ratio | {' | '.join(steps)} | requests |", "| --- " * (len(steps) + 5) + "|"]
    for kind in KINDS:
        for count, part in found[kind].items():
            each = " | ".join(f"{part['steps'][name]:.2f}" for name in steps)
            whole = f"{part['seconds']:.2f} | {part['ratio']}"
            sent = f"{part['requests']:,.0f}" if part["requests"] else "-"  # they were not counted
            lines.append(f"| {kind} | {count:,} | {whole} | {each} | {sent} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Build, measure, check, print; figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flatness", description="What history costs a batch")
    parser.add_argument("--counts", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--warm", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--memory", default="4g", help="heap of Java (default %(default)s)")
    parser.add_argument("--lake", choices=("local", "s3"), default="local", help="where the lakes lie (%(default)s)")
    parser.add_argument("--delay", type=float, help="seconds more of each request to S3, by a proxy that counts them")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/flatness.json")
    chosen, about = parser.parse_args(arguments), machine()
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-flatness-"))
    try:
        with lake_at(chosen.lake, folder, None if chosen.delay is None else 0.0) as place:
            found, peaks = _run(chosen, folder, place)
    finally:
        remove(folder)
    print(f"\nA batch of {BATCH:,} clicks, seconds\n\n{table(found)}\n\n{line(peaks)}")
    result = {"found": found, "memory_mb": peaks, "lake": chosen.lake, "delay": chosen.delay, "machine": about}
    save(chosen.out, result)
    return 0


def _run(chosen: argparse.Namespace, folder: Path, place: Place) -> tuple[dict[str, Any], dict[str, int]]:
    """What was found, and the memory of it. Errors: SystemExit where a click is joined twice."""
    spark = in_process(cores="2", memory=chosen.memory, s3=chosen.lake == "s3")
    try:
        lakes = [FilledLake(spark, folder / str(count), count, lake=f"{place.lake}/{count}") for count in chosen.counts]
        emptied(spark)
        place.slow(chosen.delay or 0.0)
        with watched() as memory:
            found = measured(lakes, chosen.warm, chosen.turns, place.requests)
        if doubled := sum(lake.doubled() for lake in lakes):
            raise SystemExit(f"{doubled} clicks are joined twice, so there are no figures")
    finally:
        spark.stop()
    return found, memory.peaks


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
