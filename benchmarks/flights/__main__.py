"""Run it: both detectors on the year, and what each found."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from benchmarks.engine import ENGINE
from benchmarks.flights.series import HOUR, Flights, ensure, flights
from benchmarks.folders import remove
from benchmarks.latency_machine import save
from bootstrap import ROOT
from clickjoin.config import Pipeline, load
from clickjoin.engine import Engine
from clickjoin.jobs.processing import process
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.processing.check import check
from clickjoin.spark.session import in_process

DAY, WEEK, LEARNED = 24 * HOUR, 168, 28  # LEARNED: days at the beginning that neither is asked about
Days = set[tuple[str, int]]


def joined(folder: Path, year: Flights) -> None:
    """A lake whose output is the year."""
    (folder / "logs").mkdir(parents=True)
    lines = (f'{{"event_id":"10.0.0.1:{n}:{time}","airport":"{name}"}}\n' for n, (name, time) in enumerate(year.left))
    (folder / "logs/2013.jsonl").write_text("".join(lines), encoding="utf-8")
    engine = Engine(in_process(), _written(folder, 6))
    while engine.join_once():
        pass


def ours(folder: Path, year: Flights, threshold: float) -> Days:
    """Days with a dip by per-key processing of that output. Errors: AssertionError where a sum is wrong."""
    pipeline = _written(folder, threshold)
    process(None, pipeline, "", lambda _: None, 0, rebuild=True)
    found = check(pipeline)
    assert found.events == len(year.left), found
    assert not found.faults, found
    rows = DeltaReader(f"{pipeline.root}/process").read("signals").to_pylist()
    return {
        (row["key"], day)
        for row in rows
        if row["kind"] == "dip"
        for day in range(_day(row["window_start"]), _day(row["window_end"]) + 1)
    }


def _written(folder: Path, threshold: float) -> Pipeline:
    file = folder / "departures.yaml"
    file.write_text(yaml.safe_dump(_pipeline(folder, threshold)), encoding="utf-8")
    return load(file)


def _day(at: datetime) -> int:
    return round(at.timestamp()) // 86_400


def _pipeline(folder: Path, threshold: float) -> dict[str, Any]:
    source = {"kind": "files", "path": str(folder / "logs/*.jsonl")}
    return {
        "pipeline": "departures", "engine": ENGINE, "lake": str(folder / "lake"),
        "stream": {"source": source, "event_id": "event_id", "event_time": "embedded"},
        "output": {"columns": {"airport": {"from": "stream.airport", "type": "STRING"}}, "records": "record"},
        "registry": {"retention": "36500d", "bucket": "1d"},
        "process": {"key": "airport", "args": {"window": "1h", "threshold": threshold, "min_count": 10}},
    }  # fmt: skip


def theirs(year: Flights, threshold: float) -> Days:
    """Days with an hour of far too few by River: Holt-Winters with the week as its season, and its error's spread."""
    from river import anomaly, time_series  # type: ignore[import-not-found,unused-ignore]

    found: Days = set()
    for airport in sorted({name for name, _ in year.left}):
        model = time_series.HoltWinters(alpha=0.05, beta=0.001, gamma=0.2, seasonality=WEEK)
        detector = anomaly.PredictiveAnomalyDetection(model, horizon=1, n_std=threshold, warmup_period=2 * WEEK)
        first, counts = year.counts(airport)
        for hour, count in enumerate(counts.tolist(), first):
            warm = hour - first >= 2 * WEEK
            if warm and detector.score_one(None, count) >= 1 and count < model.forecast(horizon=1)[0]:
                found.add((airport, hour // 24))
            detector.learn_one(None, count)
    return found


def storms(days: Days) -> list[Days]:
    """Days in a row of an airport, as one."""
    found = list[Days]()
    for airport, day in sorted(days):
        if found and (airport, day - 1) in found[-1]:
            found[-1].add((airport, day))
        else:
            found.append({(airport, day)})
    return found


def judged(name: str, found: Days, year: Flights, seconds: float) -> dict[str, Any]:
    """How many storms were found, and on which days of none something was."""
    first = year.left[0][1] // DAY + LEARNED
    wanted = storms({one for one in year.cancelled if one[1] >= first})
    found = {one for one in found if one[1] >= first}
    others = found - year.cancelled
    return {
        "detector": name, "seconds": round(seconds, 1), "storms": len(wanted),
        "found": sum(bool(storm & found) for storm in wanted),
        "missed": [[(airport, _text(day)) for airport, day in sorted(storm)] for storm in wanted if not storm & found],
        "others": len(others), "of_dates": [_text(day) for day in sorted({day for _, day in others})],
    }  # fmt: skip


def _text(day: int) -> str:
    return datetime.fromtimestamp(day * 86_400, UTC).date().isoformat()


def main(arguments: list[str]) -> int:
    """Run both; print, and write JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flights")
    parser.add_argument("--thresholds", type=float, nargs="+", default=[6, 4, 3], help="standard deviations, of both")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/flights.json")
    chosen = parser.parse_args(arguments)
    ensure()
    year, folder = flights(), Path(tempfile.mkdtemp(prefix="clickjoin-flights-"))
    joined(folder, year)
    found = []
    for threshold in chosen.thresholds:
        for name, work in (("clickjoin", partial(ours, folder)), ("river", theirs)):
            begun = time.perf_counter()
            days = work(year, threshold)
            found.append({"threshold": threshold, **judged(name, days, year, time.perf_counter() - begun)})
            print(json.dumps(found[-1]), flush=True)
    remove(folder)
    save(chosen.out, found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
