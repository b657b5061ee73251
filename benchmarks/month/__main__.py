"""Run it: the month is joined and processed step by step, by the product's own batches.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.month

A pipeline of one stream takes logs of six hours, some lines twice and all out of order by minutes; then what it made of
them is processed. On one day the log stalls for ten minutes of the simulated clock and goes on where it was. Printed
are recall and precision of what was reported after the first week, and whether each event was counted once.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from benchmarks.engine import ENGINE
from benchmarks.folders import remove
from benchmarks.latency_machine import machine, save
from benchmarks.month.traffic import BEGIN, DAY, DAYS, HOUR, MINUTE, Lines, Traffic, score
from bootstrap import ROOT
from clickjoin.config import load
from clickjoin.engine import Engine
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.processing.check import check
from clickjoin.processing.processing import Processing
from clickjoin.spark.session import in_process

END = BEGIN + DAYS * DAY
STALL, STALLED = BEGIN + 20 * DAY + 12 * HOUR, 10 * MINUTE
DISORDER, TWICE = 4 * MINUTE, 0.006


class Run:
    """The lake, the logs, and a clock that stands where the traffic is."""

    def __init__(self, folder: Path, chosen: argparse.Namespace) -> None:
        self.now, self._folder = BEGIN, folder
        self._file = folder / "trends.yaml"
        self._file.write_text(yaml.safe_dump(_pipeline(folder, chosen)), encoding="utf-8")
        self.traffic = Traffic(chosen.events, chosen.keys, chosen.spikes, chosen.dips, chosen.seed)
        self._lines = Lines(chosen.seed, TWICE, DISORDER)
        (folder / "logs").mkdir()
        self._logs, self.events, self.seconds = 0, 0, {"join": 0.0, "process": 0.0}
        self._engine: Engine | None = None
        self._processing: Processing | None = None

    def clock(self) -> float:
        """Seconds since 1970."""
        return self.now / 10**6

    def log(self, begin: int, end: int) -> None:
        """Write the log of some time, as of its end."""
        times, keys = self.traffic.between(begin, end)
        self.events += len(times)
        self._logs += 1
        path = self._folder / f"logs/{self._logs:05}.jsonl"
        path.write_text("".join(f"{line}\n" for line in self._lines.of(times, keys)), encoding="utf-8")
        os.utime(path, (end / 10**6, end / 10**6))

    def work(self) -> None:
        """Join and process all there is."""
        begun = time.perf_counter()
        if self._engine is None:
            self._engine = Engine(in_process(), load(self._file), clock=self.clock)
        while self._engine.join_once():
            pass
        joined = time.perf_counter()
        if self._processing is None:
            self._processing = Processing(load(self._file), clock=self.clock)
        self._processing.drain(lambda _: None)
        self.seconds["join"] += joined - begun
        self.seconds["process"] += time.perf_counter() - joined

    def month(self, step: int) -> list[int]:
        """All of it; returns the watermark at each look during the stall, in seconds before its beginning."""
        held = list[int]()
        # The traffic goes on: what is reported of the month's last hours comes after it.
        while self.now < END + 2 * step:
            if self.now == STALL:
                for _ in range(STALLED // MINUTE):  # nothing comes, and time passes
                    self.now += MINUTE
                    self.work()
                    held.append((STALL - self._watermark()) // 10**6)
                self.log(STALL, self.now)
                self.work()
            near = STALL - HOUR <= self.now < STALL + HOUR
            width = 10 * MINUTE if near else step
            end = (self.now // width + 1) * width
            if self.now < STALL - HOUR < end:
                end = STALL - HOUR
            self.log(self.now, end)
            self.now = end
            self.work()
        return held

    def _watermark(self) -> int:
        rows = self._read("processed")
        return max((_micros(row["watermark"]) for row in rows if row["watermark"]), default=0)

    def _read(self, name: str) -> list[dict[str, Any]]:
        return DeltaReader(f"{load(self._file).root}/process").read(name).to_pylist()

    def result(self, window: int) -> dict[str, Any]:
        """What was found, and whether all was counted."""
        rows = [
            row | {name: _micros(row[name]) for name in ("window_start", "window_end")} for row in self._read("signals")
        ]
        rows = [row for row in rows if row["window_start"] < END]
        sums = check(load(self._file))
        return {
            "events": self.events, "repeats": self._lines.repeats, "counted": sums.events, "late": sums.late,
            "faults": list(sums.faults), **score(self.traffic.changes, rows, window),
            "gone_reported": sum(_of(row, self.traffic.gone) for row in rows),
            "signals_in_stall": sum(STALL - HOUR <= row["window_start"] < STALL + HOUR and row["kind"] == "dip"
                                    for row in rows),
            "seconds": {name: round(value, 1) for name, value in self.seconds.items()},
        }  # fmt: skip


def _of(row: dict[str, Any], change: Any) -> bool:
    return bool(row["key"] == f"item-{change.key}" and row["kind"] == change.kind and row["window_end"] > change.start)


def _micros(at: Any) -> int:
    return round(at.timestamp() * 10**6)


def _pipeline(folder: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    source = {"kind": "files", "path": str(folder / "logs/*.jsonl")}
    return {
        "pipeline": "trends", "engine": ENGINE, "lake": str(folder / "lake"),
        "stream": {"source": source, "event_id": "event_id", "event_time": "embedded"},
        "output": {"columns": {"item": {"from": "stream.item", "type": "STRING"}}, "records": "record"},
        "registry": {"retention": "36500d", "bucket": "1d"},
        "process": {"key": "item", "args": {"window": chosen.window}, "catch_up": "1h"},
    }  # fmt: skip


def main(arguments: list[str]) -> int:
    """Run it; print, and write JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.month")
    parser.add_argument("--events", type=int, default=12_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--spikes", type=int, default=200)
    parser.add_argument("--dips", type=int, default=100)
    parser.add_argument("--window", default="1m")
    parser.add_argument("--step", type=int, default=6, help="hours")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/month.json")
    chosen = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-month-"))
    run = Run(folder, chosen)
    held = run.month(chosen.step * HOUR)
    found = run.result(MINUTE) | {"watermark_before_the_stall": held}
    remove(folder)
    print(json.dumps(found, indent=2))
    save(chosen.out, {"found": found, "machine": machine()})
    return 0 if not found["faults"] and min(found["recall"], found["precision"]) >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
