"""What a far history costs: fresh batches of 10,000 clicks beside a billion claims, and what a process holds of them.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.far_out

Real: the last hour of claims and queries, as dense as a billion in `--days`; the logs of `registry`, `primary`,
`foreign` and `joined`, with an add action and statistics for each file of the days before, and their checkpoints.
Simulated: the data files of those days, which are not there. No fresh click names them, and a batch that opened one
would fail. They are as many as compaction leaves, or `--files` as where nobody compacts. No figure is printed unless
every click of every batch was joined, and once.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from benchmarks.flatness import BATCH, FilledLake
from benchmarks.folders import remove
from benchmarks.latency_machine import machine, save
from benchmarks.memory import emptied, line, watched
from benchmarks.registry import NOON, SHARDS
from bootstrap import ROOT
from clickjoin.lake import light_table
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.maintenance import file_sizes
from clickjoin.model.ids import MICROS
from clickjoin.schemas import BY_NAME
from clickjoin.spark.session import in_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEAR = 1_000_000
REAL_HOURS = 1
SIZES = {"registry": 7, "primary": 60, "foreign": 60, "joined": 60}  # bytes a row, about
AN_ENTRY = 50_000  # files
SETTLES = 5


class FarLake(FilledLake):
    """A lake with `claims` of so many days; `files` of the registry at least, and a quarter of them in other tables."""

    def __init__(self, spark: SparkSession, folder: Path, claims: int, days: int, files: int = 0) -> None:
        hours = days * 24
        super().__init__(spark, folder, claims * REAL_HOURS // hours, REAL_HOURS * 3600 * MICROS)
        self.claims = claims
        for table in SIZES:
            _add_history(self.engine.lake.delta.path(table), table, claims // hours, hours, files // (SHARDS * hours))
        self.open()

    def doubled(self) -> int:
        """See FilledLake: of the files that are there."""
        root = Path(self.engine.lake.delta.path("joined"))
        paths = (root / unquote(path) for path in self.engine.lake.delta.files("joined")["path"].to_pylist())
        ids = [pq.read_table(path, columns=["event_id"])["event_id"] for path in paths if path.exists()]
        found = pa.chunked_array([chunk for each in ids for chunk in each.chunks])
        return len(found) - len(found.unique())


def _add_history(path: str, table: str, rows: int, hours: int, least: int) -> None:
    """Entries of files of the hours before those that are real, and a checkpoint."""
    version, lines = int(DeltaTable(path).version()), list[str]()
    for add in _adds(table, rows, hours, least):
        lines.append(add)
        if len(lines) == AN_ENTRY:
            version, lines = _entry(path, version, lines), []
    _entry(path, version, lines)
    DeltaTable(path).create_checkpoint()


def _entry(path: str, version: int, lines: list[str]) -> int:
    info = json.dumps({"commitInfo": {"timestamp": int(NOON.timestamp() * 1000), "operation": "WRITE"}})
    Path(path, "_delta_log", f"{version + 1:020}.json").write_text("\n".join([info, *lines, ""]), encoding="utf-8")
    return version + 1


def _adds(table: str, rows: int, hours: int, least: int) -> Iterator[str]:
    """One for each file: of a bucket and shard of the registry, of a bucket of others."""
    shards = range(SHARDS) if table == "registry" else (None,)
    held = rows // len(shards)
    count = max(least, -(-held * SIZES[table] // file_sizes(table).most))
    for hour in range(hours, REAL_HOURS, -1):
        for shard in shards:
            for number in range(count):
                yield _add(table, NOON - timedelta(hours=hour), shard, number, held // count)


def _add(table: str, start: datetime, shard: int | None, number: int, rows: int) -> str:
    values = {"bucket": f"{start:%Y-%m-%dT%H%MZ}"} | ({} if shard is None else {"shard": str(shard)})
    values = {"event_date": f"{start:%Y-%m-%d}"} if table == "joined" else values
    folder = "/".join(f"{name}={value}" for name, value in values.items())
    known = set(BY_NAME[table].statistics)
    ends = []
    for second in (0, 3599):
        at = start + timedelta(seconds=second)
        said = {
            "event_time": f"{at:%Y-%m-%dT%H:%M:%S}.000Z", "event_id": f"10.1.0.{number % 100}:77:{at.timestamp():.0f}",
            "token": f"shop/main/join/{number}", "batch": number,
        }  # fmt: skip
        ends.append({name: value for name, value in said.items() if name in known})
    stats = {"numRecords": rows, "minValues": ends[0], "maxValues": ends[1], "nullCount": dict.fromkeys(ends[0], 0)}
    name = f"part-{number:06d}-6a0f7c1e-5d0b-4a52-9e0e-{int(start.timestamp()):012d}.c000.zstd.parquet"
    return json.dumps({"add": {
        "path": f"{folder}/{name}", "partitionValues": values, "size": rows * SIZES[table], "dataChange": True,
        "modificationTime": int(start.timestamp() * 1000), "stats": json.dumps(stats),
    }})  # fmt: skip


def hold(root: str) -> dict[str, float]:
    """What it takes a new process to hold the files of all tables, and to see a commit of another."""
    process, reader = psutil.Process(), DeltaReader(root)
    before, start = process.memory_info().rss, time.perf_counter()
    files = sum(reader.files(name).num_rows for name in SIZES)
    found: dict[str, float] = {"files": files, "seconds_to_start": time.perf_counter() - start}
    gc.collect()
    for _ in range(SETTLES):  # allocators give memory back after some seconds
        time.sleep(3)
        _seen(reader, files)
    held = process.memory_info().rss - before
    found |= {"held_mb": held / 1e6, "held_mb_a_million": held / files}
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    found["peak_mb"] = int(peak.split()[1]) / 1e3 - before / 1e6
    found["seconds_nothing_new"] = _seen(reader, files)
    version = reader.version("registry")
    _entry(reader.path("registry"), version, [_add("registry", NOON - timedelta(days=1), 0, 900_000 + version, 1)])
    found["seconds_one_commit"] = _seen(reader, files + 1)
    return found


def _seen(reader: DeltaReader, files: int) -> float:
    start = time.perf_counter()
    found = sum(reader.files(name).num_rows for name in SIZES)
    seconds = time.perf_counter() - start
    assert found == files, (found, files)
    return seconds


def held(root: str, whole: bool) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.far_out", "--hold", root, *(["--whole"] if whole else [])]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {name: round(value, 3) for name, value in found.items()}


def measured(lakes: dict[str, FilledLake], warm: int, turns: int) -> dict[str, Any]:
    """Medians of fresh batches beside each lake in turns, and their ratio to the first's."""
    seen: dict[str, list[dict[str, float]]] = {name: [] for name in lakes}
    for turn in range(warm + turns):
        for name, lake in lakes.items():
            steps = lake.batch("fresh", turn)
            print(f"turn {turn}: {name}: {sum(steps.values()):.2f} s", flush=True)
            seen[name] += [steps] if turn >= warm else []
    found: dict[str, Any] = {}
    for name, runs in seen.items():
        whole = statistics.median(sum(run.values()) for run in runs)
        steps = {step: round(statistics.median(run[step] for run in runs), 3) for step in runs[0]}
        first = found[next(iter(lakes))]["seconds"] if found else whole
        found[name] = {"seconds": round(whole, 3), "steps": steps, "ratio": round(whole / first, 2)}
    return found


def table(found: dict[str, Any], process: dict[str, dict[str, float]]) -> str:
    """As Markdown."""
    steps = list(next(iter(found.values()))["steps"])
    lines = [f"| claims | seconds | ratio | {' | '.join(steps)} |", "| --- " * (len(steps) + 3) + "|"]
    for name, part in found.items():
        each = " | ".join(f"{part['steps'][step]:.2f}" for step in steps)
        lines.append(f"| {name} | {part['seconds']:.2f} | {part['ratio']} | {each} |")
    lines += ["", f"| a process | {' | '.join(process)} |", "| --- " * (len(process) + 1) + "|"]
    for what in next(iter(process.values())):
        lines.append(f"| {what} | {' | '.join(f'{part[what]:,.3f}' for part in process.values())} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Build, measure, check, print; figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.far_out", description="What a far history costs")
    parser.add_argument("--claims", type=int, default=1_000_000_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--files", type=int, default=1_000_000, help="of the registry, uncompacted; 0: none such")
    parser.add_argument("--warm", type=int, default=2)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--whole", action="store_true", help="handles of delta-rs alone, to compare")
    parser.add_argument("--hold", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/far_out.json")
    chosen = parser.parse_args(arguments)
    if chosen.whole:
        light_table.MANY = sys.maxsize
    if chosen.hold:
        print(json.dumps(hold(chosen.hold)))
        return 0
    folder, about = Path(tempfile.mkdtemp(prefix="clickjoin-far-")), machine()
    spark = in_process(cores="2", memory="2g")
    try:
        lakes: dict[str, FilledLake] = {f"{NEAR:,}": FilledLake(spark, folder / "near", NEAR)}
        far, rows = f"{chosen.claims:,}", chosen.claims * REAL_HOURS // (chosen.days * 24)
        # Its clicks name as many queries as the far lake's; those of the lake before have a few queries a second.
        lakes[f"{rows:,}, the last hour of it"] = FilledLake(spark, folder / "hour", rows, REAL_HOURS * 3600 * MICROS)
        lakes[far] = FarLake(spark, folder / "far", chosen.claims, chosen.days)
        if chosen.files:
            many = FarLake(spark, folder / "many", chosen.claims, chosen.days, chosen.files)
            lakes[f"{far}, {chosen.files:,} files"] = many
        process = {name: held(lake.engine.lake.delta.root, chosen.whole) for name, lake in lakes.items()}
        emptied(spark)
        with watched() as memory:
            found = measured(lakes, chosen.warm, chosen.turns)
        if doubled := sum(lake.doubled() for lake in lakes.values()):
            raise SystemExit(f"{doubled} clicks are joined twice, so there are no figures")
    finally:
        spark.stop()
        remove(folder)
    print(f"\nA batch of {BATCH:,} clicks, seconds\n\n{table(found, process)}\n\n{line(memory.peaks)}")
    result = {"found": found, "process": process, "memory_mb": memory.peaks, "machine": about}
    save(chosen.out, result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
