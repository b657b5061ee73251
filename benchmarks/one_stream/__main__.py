"""Runs the contenders in turns, each beside a window of few and of many ids, and reports ratios of the one run."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.folders import remove
from benchmarks.latency_machine import machine, save
from benchmarks.one_stream.batches import BATCH, REPEATS
from benchmarks.one_stream.product import Window
from benchmarks.one_stream.rivals import Contender, DropDuplicates, RocksSet, ensure
from bootstrap import ROOT
from clickjoin.spark.session import in_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PRODUCT, ROCKS, SPARK = "clickjoin", "rocksdb", "dropduplicates"


@contextmanager
def made(spark: SparkSession, name: str, folder: Path, count: int) -> Iterator[Contender]:
    """A contender with its window filled."""
    place = folder / f"{name}-{count}"
    held: Window | RocksSet | DropDuplicates
    if name == PRODUCT:
        held = Window(spark, place, count)
    else:
        held = RocksSet(place, count) if name == ROCKS else DropDuplicates(spark, place, count)
    print(f"{held.name}: {count:,} ids filled in within {held.filled_in:.0f} s", flush=True)
    try:
        yield held
    finally:
        if not isinstance(held, Window):
            held.close()


def measured(spark: SparkSession, name: str, folder: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """Batches in turns beside both windows: medians in seconds, their ratio, bytes an id."""
    counts = [min(count, chosen.most) if name == SPARK else count for count in chosen.counts]
    seen: defaultdict[int, list[float]] = defaultdict(list)
    with made(spark, name, folder, counts[0]) as small, made(spark, name, folder, counts[-1]) as large:
        for turn in range(chosen.warm + chosen.turns):
            for held in (small, large):
                seconds = held.batch(turn)
                steps = {
                    step.removeprefix("seconds_"): round(took, 2) for step, took in getattr(held, "steps", {}).items()
                }
                print(f"turn {turn}: {held.name}, {held.count:,} ids: {seconds:.3f} s {steps or ''}", flush=True)
                seen[held.count] += [seconds] if turn >= chosen.warm else []
        found: dict[str, Any] = {"ids": counts, "bytes_on_disk": large.bytes_on_disk(), "seconds": dict(seen)}
        if isinstance(large, Window):
            found |= {"bytes_in_memory": large.bytes_in_memory(), "output": large.published()}
    medians = [statistics.median(seen[count]) for count in counts]
    return found | {"medians": medians, "ratio": round(medians[1] / medians[0], 2)}


def table(found: dict[str, dict[str, Any]]) -> str:
    """As Markdown."""
    lines = ["| | ids | seconds a batch | ids | seconds a batch | ratio | bytes an id on disk |", "|" + " --- |" * 7]
    for name, part in found.items():
        each = " | ".join(f"{count:,} | {took:.3f}" for count, took in zip(part["ids"], part["medians"], strict=True))
        size = " + ".join(f"{number:.1f} of {what}" for what, number in part["bytes_on_disk"].items())
        lines.append(f"| {name} | {each} | {part['ratio']} | {size} |")
    return "\n".join(lines)


def options(arguments: list[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.one_stream", description="Each id once, side by side")
    parser.add_argument("--counts", type=int, nargs=2, default=[1_000_000, 10_000_000], help="ids in the two windows")
    parser.add_argument("--most", type=int, default=10_000_000, help="ids that dropDuplicates is given at most")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--warm", type=int, default=3)
    parser.add_argument("--only", choices=[PRODUCT, ROCKS, SPARK], action="append", help="these alone")
    parser.add_argument("--memory", default="4g", help="heap of Java (default %(default)s)")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/one_stream.json")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Fill, measure, check, print; figures as JSON."""
    chosen, about = options(arguments), machine()
    names = chosen.only or [PRODUCT, ROCKS, SPARK]
    if ROCKS in names:
        ensure()
    folder, found = Path(tempfile.mkdtemp(prefix="clickjoin-ids-")), {}
    spark = in_process(cores="2", memory=chosen.memory)
    try:
        for name in names:
            found[name] = measured(spark, name, folder, chosen)
            remove(folder)
            folder.mkdir()
    finally:
        spark.stop()
        remove(folder)
    print(f"\nA batch of {BATCH:,} ids, of which {REPEATS} are repeats from all of the window: each was found\n")
    print(table(found))
    if PRODUCT in found:
        rows, doubled = found[PRODUCT]["output"]
        memory = found[PRODUCT]["bytes_in_memory"]
        print(f"\nclickjoin holds {memory:.2f} bytes an id in memory; of {rows:,} rows published {doubled} are doubled")
    save(chosen.out, {"found": found, "machine": about})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
