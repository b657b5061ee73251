"""Many pipelines on one Airflow: what their DAGs cost to parse and to hold, and to schedule while no record comes.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.pipelines --pipelines 30 --seconds 120

Three turns, each on a stack of its own: all DAGs paused; all on; on, where each file says `airflow: {dags: [join]}`.
Tasks are real and reach Spark Connect; their logs are empty. Processor seconds are those that the processes used
themselves, so that a machine that others share shows about the same. Measured is what comes once as many runs have
ended as there are pipelines, since the first ones begin their lakes. Where that takes longer than `--warm` seconds, or
no run ended, no figure is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from benchmarks.latency_machine import machine, save
from bootstrap import ROOT
from stack import Stack
from stack.home import clean_environment

PIPELINE = """\
pipeline: p{number:02}
engine: arrow
lake: ./lake
primary:
  source: {{kind: files, path: "./logs/p{number:02}/queries/*.jsonl"}}
  event_id: event_id
  event_time: embedded
foreign:
  source: {{kind: files, path: "./logs/p{number:02}/clicks/*.jsonl"}}
  event_id: event_id
  event_time: embedded
  primary_id: query_id
  primary_time: embedded
"""
JOIN_ONLY = "airflow: {dags: [join]}\n"
PARSE = """\
import json, sys, time
from airflow.dag_processing.dagbag import DagBag
used, begun = time.process_time(), time.perf_counter()
bag = DagBag(dag_folder=sys.argv[1])
assert not bag.import_errors, bag.import_errors
print(json.dumps({"dags": len(bag.dags), "seconds": time.perf_counter() - begun, "cpu": time.process_time() - used}))
"""
ONE_FILE = "from clickjoin_airflow import dags_for\n\nglobals().update(dags_for({folder!r}))\n"
TURNS = {"paused": (True, ""), "all on": (False, ""), "join alone, on": (False, JOIN_ONLY)}


def write(folder: Path, count: int, more: str) -> None:
    """Files of pipelines, with logs that hold nothing."""
    for number in range(count):
        (folder / f"p{number:02}.yaml").write_text(PIPELINE.format(number=number) + more)
        for side in ("queries", "clicks"):
            log = folder / f"logs/p{number:02}" / side / "0.jsonl"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.touch()  # where no file matches, a run fails


def parse(dags: Path, pipelines: Path) -> dict[str, Any]:
    """What importing a folder of DAG files costs, in a process of its own."""
    with tempfile.TemporaryDirectory() as home:
        env = clean_environment() | {"AIRFLOW_HOME": home, "CLICKJOIN_PIPELINES": str(pipelines)}
        env |= {"AIRFLOW__CORE__LOAD_EXAMPLES": "False", "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins")}
        command = [sys.executable, "-c", PARSE, str(dags)]
        done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def used(process: psutil.Process) -> tuple[float, float]:
    """Seconds of a processor that a process has used, and its children, those that have ended too."""
    times = process.cpu_times()
    whole = times.children_user + times.children_system
    for child in process.children(recursive=True):
        try:
            of = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        whole += of.user + of.system + of.children_user + of.children_system
    return times.user + times.system, whole


def resident(process: psutil.Process) -> int:
    """MB that a process and its children hold."""
    total = 0
    for each in (process, *process.children(recursive=True)):
        try:
            total += each.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total >> 20


def watch(stack: Stack, seconds: float, expected: int, first: int, warm: float) -> dict[str, Any]:
    """What scheduler and DAG processor use while it goes on, per minute.

    `expected` DAGs must be known first, and `first` runs have ended, or `warm` seconds have passed.
    """
    until = time.monotonic() + 300
    while total(stack, "/dags?limit=1") < expected:
        assert time.monotonic() < until, f"not all of {expected} DAGs are known"
        time.sleep(1)
    time.sleep(20)
    warmed = time.monotonic()
    while finished(stack) < first and time.monotonic() - warmed < warm:
        time.sleep(2)
    first_runs = time.monotonic() - warmed
    parts = {one.name: psutil.Process(one.pid) for one in stack.servers if one.name in ("scheduler", "dag-processor")}
    before, runs = {name: used(process) for name, process in parts.items()}, finished(stack)
    begun, peak = time.monotonic(), 0
    while time.monotonic() - begun < seconds:
        peak = max(peak, resident(parts["dag-processor"]))
        time.sleep(0.5)
    minutes = (time.monotonic() - begun) / 60
    after = {name: used(process) for name, process in parts.items()}
    own, children = ({name: (after[name][of] - before[name][of]) / minutes for name in parts} for of in (0, 1))
    return {
        "runs a minute": (finished(stack) - runs) / minutes,
        "scheduler": own["scheduler"],
        "tasks": children["scheduler"],
        "dag processor": own["dag-processor"] + children["dag-processor"],
        "dag processor MB": peak,
        "load": os.getloadavg()[0],
        "first runs, seconds": first_runs,
    }


def finished(stack: Stack) -> int:
    """How many runs have succeeded."""
    return total(stack, "/dags/~/dagRuns?limit=1&state=success")


def total(stack: Stack, path: str) -> int:
    """How many entries Airflow counts; asked again for two minutes, since all that starts at once keeps it waiting."""
    until = time.monotonic() + 120
    while True:
        try:
            return int(stack.api("GET", path)["total_entries"])
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(2)


def turn(folder: Path, count: int, seconds: float, warm: float, name: str) -> dict[str, Any]:
    """One turn on a stack of its own."""
    paused, more = TURNS[name]
    pipelines = folder / name.replace(" ", "-").replace(",", "")
    pipelines.mkdir()
    write(pipelines, count, more)
    env = {"AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": str(paused)}
    env |= {"AIRFLOW__CORE__PARALLELISM": str(count + 8)}  # a join holds a slot for its whole lease
    with Stack(pipelines / "home", pipelines=pipelines, env=env, timeout=400) as stack:
        return watch(stack, seconds, count * (1 if more else 9), 0 if paused else count, warm)


def table(turns: Mapping[str, Mapping[str, Any]]) -> str:
    """The turns as Markdown; processor seconds a minute."""
    head = ["", *next(iter(turns.values()))]
    rows = [f"| {name} | {' | '.join(f'{value:.1f}' for value in found.values())} |" for name, found in turns.items()]
    return "\n".join([f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |", *rows])


def main(arguments: list[str]) -> int:
    """Measure, and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipelines", description=__doc__.splitlines()[0])
    parser.add_argument("--pipelines", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=120, help="of each turn")
    parser.add_argument("--warm", type=float, default=900, help="at most, until the first runs have ended")
    parser.add_argument("--turn", choices=TURNS, action="append", help="only these; default: all")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/pipelines.json")
    given = parser.parse_args(arguments)
    about = machine()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "files").mkdir()
        (folder / "one").mkdir()
        write(folder / "files", given.pipelines, "")
        (folder / "one/joins.py").write_text(ONE_FILE.format(folder=str(folder / "files")))
        parsed = {"dags/": parse(ROOT / "dags", folder / "files"), "one file": parse(folder / "one", folder / "files")}
        print(f"load {about['load_before']}; parsed: {json.dumps(parsed)}\n", flush=True)
        turns = {name: turn(folder, given.pipelines, given.seconds, given.warm, name) for name in given.turn or TURNS}
    starved = [name for name, found in turns.items() if not TURNS[name][0] and not found["runs a minute"]]
    if good := {name: found for name, found in turns.items() if name not in starved}:
        print(table(good))
    for name in starved:
        print(f"{name}: not one run ended, so the machine had no room for the tasks: no figures")
    save(given.out, {"machine": about, "parsed": parsed, "turns": turns})
    return 1 if starved else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
