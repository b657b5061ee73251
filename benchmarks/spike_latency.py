"""How long from a spike's first event to its row in table `signals`, through Airflow, at a steady rate of live events.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.spike_latency --rate 1000 --seconds 300

A pipeline of one stream takes lines that a process of its own writes; every few seconds an item that was quiet has 30
events a second for five seconds. Its row can be read once the commit that added it is in the table's log. Before a
figure is printed, each spike was found, none was found that was not made, and each event was counted once.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml
from rich.console import Console

from benchmarks.engine import ENGINE
from benchmarks.latency_machine import machine, save
from bootstrap import ROOT, Problem
from clickjoin.config import load
from clickjoin.processing.check import check
from demo.latency import Readable, spread
from demo.running import Running, running
from demo.screen import Screen

TICK, EVERY, LASTS, BURST = 0.1, 6.0, 5.0, 30  # seconds; events a second of a spike
WARM, AFTER = 45.0, 180.0
ITEMS = 20_000  # each with an event in twenty seconds


def write_live(logs: Path, rate: float, seconds: float, seed: int) -> None:
    """Write lines as time goes by, spikes among them from WARM on; what was done lies in `spikes.json`."""
    rng, spikes, count = random.Random(seed), dict[str, int](), 0
    begun = time.time()
    due, logs_written = begun, 0
    while (now := time.time()) < begun + seconds:
        if now < due:
            time.sleep(due - now)
            continue
        names = rng.choices(range(ITEMS), k=round(rate * TICK))
        items = [f"item-{name}" for name in names]
        passed = due - begun - WARM
        nth = int(passed // EVERY)
        if 0 <= passed < seconds - WARM - LASTS and passed % EVERY < LASTS:
            name = f"spike-{nth}"
            spikes.setdefault(name, int(due * 1e6))
            items += [name] * round(BURST * TICK)
        lines = []
        for item in items:
            count += 1
            lines.append(f'{{"event_id":"10.0.0.1:{count}:{int(due * 1e6)}","item":"{item}"}}\n')
        with (logs / f"{logs_written // 600:04}.jsonl").open("a", encoding="utf-8") as file:
            file.write("".join(lines))
        logs_written += 1
        due += TICK
    (logs.parent / "spikes.json").write_text(json.dumps({"spikes": spikes, "events": count}), encoding="utf-8")


def _pipeline(file: Path, lake: Path, logs: Path, lease: str) -> None:
    made = {
        "pipeline": file.stem, "engine": ENGINE, "lake": str(lake),
        "stream": {"source": {"kind": "files", "path": f"{logs}/*.jsonl"}, "event_id": "event_id",
                   "event_time": "embedded"},
        "output": {"columns": {"item": {"from": "stream.item", "type": "STRING"}}, "records": "record"},
        "registry": {"retention": "3d", "bucket": "1h"},
        "close": {"max_out_of_orderness": "1s"},
        "batch": {"lease": lease},
        "process": {"key": "item", "args": {"window": "10s", "warm": "10s"}},
    }  # fmt: skip
    file.parent.mkdir(parents=True)
    file.write_text(yaml.safe_dump(made, sort_keys=False), encoding="utf-8")


def measure(folder: Path, chosen: argparse.Namespace, screen: Screen) -> dict[str, Any]:
    """Run it all. Errors: Problem unless all spikes were found, no other, and each event was counted once."""
    file, logs, lake = folder / "pipelines/spikes.yaml", folder / "logs", folder / "lake"
    logs.mkdir(parents=True)
    _pipeline(file, lake, logs, chosen.lease)
    reported = Readable(lake / "spikes/process/signals", "key")
    with running(folder / "stack", file, screen.waiting("starting")) as stack:
        stack.switch_on("join", "process")
        work = (logs, chosen.rate, chosen.seconds + WARM, chosen.seed)
        writer = multiprocessing.get_context("spawn").Process(target=write_live, args=work, daemon=True)
        writer.start()
        _wait(folder, reported, stack, screen, writer, chosen.seconds + WARM + AFTER)
    truth = json.loads((folder / "spikes.json").read_text(encoding="utf-8"))
    found = check(load(file))
    if found.faults or found.events + found.late != truth["events"]:
        raise Problem(f"not every event was counted once: {found}, {truth['events']} were written")
    strange = [name for name in reported.moments if name not in truth["spikes"]]
    if strange:
        raise Problem(f"reported, and not made: {strange}")
    took = [reported.moments[name] - moment for name, moment in truth["spikes"].items()]
    return {
        "rate": chosen.rate,
        "lease": chosen.lease,
        "events": truth["events"],
        "late": found.late,
        "spikes": vars(_known(spread(took))),
    }


def _known(found: Any) -> Any:
    if found is None:
        raise Problem("no spike was made")
    return found


def _wait(folder: Path, reported: Readable, stack: Running, screen: Screen, writer: Any, patience: float) -> None:
    deadline = time.monotonic() + patience
    while writer.is_alive() or _missing(folder, reported):
        if writer.exitcode or time.monotonic() > deadline:
            raise Problem(f"writer ended with {writer.exitcode}, missing {_missing(folder, reported)}")
        stack.require_alive()
        reported.update()
        screen.show({"phase": "live", "signals": f"{len(reported.moments)}", "join": stack.runs()})
        time.sleep(2)


def _missing(folder: Path, reported: Readable) -> list[str]:
    """Spikes that no row tells of yet, and whether rows are unread; empty if none."""
    truth = json.loads((folder / "spikes.json").read_text(encoding="utf-8"))
    processed = folder / "lake/spikes/process/processed"
    names = [name for name in truth["spikes"] if name not in reported.moments]
    return names or ([] if _counted(processed) == truth["events"] else ["events"])


def _counted(table: Path) -> int:
    files = pq.read_table(table, columns=["events", "late"]) if table.exists() else None
    return sum(files["events"].to_pylist()) + sum(files["late"].to_pylist()) if files else 0


def main(arguments: list[str]) -> int:
    """Run the benchmark; 1 if a spike was missed or invented, or an event not counted once."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spike_latency")
    parser.add_argument("--rate", type=float, default=1000, help="events a second")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--lease", default="60s", help="how long a task of Airflow works (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/spike_latency.json")
    chosen, console = parser.parse_args(arguments), Console()
    folder = ROOT / ".run/benchmarks" / f"{time.strftime('spikes-%Y%m%d-%H%M%S')}-{os.getpid()}"
    try:
        with Screen(console) as screen:
            found = measure(folder, chosen, screen)
    except Problem as problem:
        print(f"clickjoin: {problem}", file=sys.stderr)
        return 1
    figures = found["spikes"]
    console.print(
        f"{figures['count']} spikes at {found['rate']:g} events/s: p50 {figures['p50']} s, p90 {figures['p90']} s, "
        f"p99 {figures['p99']} s, most {figures['max']} s; {found['events']:,} events each counted once"
    )
    save(chosen.out, found | {"machine": machine()})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
