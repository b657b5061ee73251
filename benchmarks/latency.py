"""How long from written to readable, through Airflow or `clickjoin run`, at a steady rate of live events.

    .venv/bin/python -m benchmarks.latency --rate 1000 --seconds 180
    .venv/bin/python -m benchmarks.latency --rate 5000 --seconds 300 --through run
    .venv/bin/python -m benchmarks.latency --lake s3 --request-delay 0.03
    .venv/bin/python -m benchmarks.latency --source kafka

A generator writes queries and clicks; an id's time is the moment of its writing. A click is readable once the commit
that added its joined row is in the table's log. Before a figure is printed, the oracle of the tests has counted every
id, and found none doubled or lost. Warm-up traffic goes first: it is counted by the oracle and left out of the figures.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.console import Console

from benchmarks.engine import ENGINE
from benchmarks.latency_machine import machine, save
from benchmarks.live import Alone, alone
from benchmarks.memory import Memory, line, watched
from benchmarks.shipper import STREAMS, shipping
from benchmarks.store import Place, lake_at
from bootstrap import ROOT, Problem
from clickjoin.generate import Traffic, generate
from demo.lake import Lake
from demo.latency import Readable, spread
from demo.running import Running, running, write_pipeline
from demo.screen import Screen
from demo.topics import source
from tests import oracle

POLL = 2.0
AFTER = 180.0  # seconds after the last line in which everything must be joined


@dataclass(frozen=True)
class Load:
    """What is asked for: events (queries and clicks) a second, and which part of them clicks are."""

    rate: float
    seconds: float
    clicks: float
    warm: float
    seed: int
    through: str
    delay: float
    lake: str = "local"
    request_delay: float = 0.0
    source: str = "files"
    interval: str = "1s"

    def traffic(self, seconds: float, seed: int) -> Traffic:
        """Live traffic of so many seconds. Clicks follow soon, so their rate is steady after the first seconds."""
        events = self.rate * seconds
        clicks = round(events * self.clicks)
        return Traffic(
            clicks=clicks, queries=max(round(events) - clicks, 1), rate=self.rate, seed=seed,
            click_delay=self.delay, click_spread=0.5, click_delay_max=2.5 * self.delay,
        )  # fmt: skip


class Bench:
    """One benchmark in a folder of its own. `servers`: the broker that a shipper sends the logs to, if any."""

    def __init__(self, folder: Path, load: Load, place: Place, servers: str = "") -> None:
        self.folder, self.load, self.place = folder, load, place
        self.pipeline = folder / "pipelines/latency.yaml"
        self.logs = folder / "logs"
        sources = (source(servers, name) if servers else self.logs / f"*/{name}/*.jsonl" for name in STREAMS)
        registry = {"retention": "3d", "bucket": "1h", "shards": 4}
        batch = {"trigger_interval": load.interval}
        write_pipeline(self.pipeline, place.lake, *sources, registry=registry, batch=batch, engine=ENGINE)
        self.lake = Lake(place.folder / "latency")
        self.readable = Readable(self.lake.folder / "joined")
        self.memory, self.requests = Memory(), dict[str, float]()

    def run(self, stack: Running | Alone, screen: Screen) -> None:
        """Warm up, then run. Errors: Problem if what was written is not joined in time."""
        self._write("warm", self.load.warm, self.load.seed + 1, stack, screen)
        before, batches = self.place.requests(), self.lake.rows("metrics")
        with watched(rest="benchmark") as self.memory:
            self._write("run", self.load.seconds, self.load.seed, stack, screen)
        sent, done = self.place.requests() - before, max(self.lake.rows("metrics") - batches, 1)
        self.requests = {kind: round(count / done, 1) for kind, count in sent.items()}

    def _write(self, name: str, seconds: float, seed: int, stack: Running | Alone, screen: Screen) -> None:
        # In a process of its own: what is looked at here must not make the writer late.
        work = (self.logs / name, self.load.traffic(seconds, seed))
        writer = multiprocessing.get_context("spawn").Process(target=write_live, args=work, daemon=True)
        writer.start()
        deadline = time.monotonic() + seconds + AFTER
        while writer.is_alive() or self.missing():
            if writer.exitcode or time.monotonic() > deadline:
                raise Problem(
                    f"{name}: writer ended with {writer.exitcode}, missing {self.missing()}; see {stack.logs}"
                )
            self.readable.update()
            screen.show({"phase": name, **self.facts(stack)})
            time.sleep(POLL)

    def missing(self) -> str:
        """Lines that are written and not landed, clicks that are not joined; empty if none."""
        truths = [json.loads(path.read_text(encoding="utf-8")) for path in self.logs.glob("*/truth.json")]
        lines = sum(truth[stream]["lines"] for truth in truths for stream in ("queries", "clicks"))
        lines -= self.lake.rows("primary") + self.lake.rows("foreign")
        clicks = sum(truth["joinable"] for truth in truths) - len(self.readable.moments)
        return f"{lines} lines, {clicks} clicks" if lines or clicks else ""

    def facts(self, stack: Running | Alone) -> dict[str, str]:
        """How far everything is."""
        names = ("primary", "foreign", "joined", "metrics")
        return {name: f"{self.lake.rows(name):,}" for name in names} | {self.load.through: stack.runs()}

    def result(self) -> dict[str, Any]:
        """All figures of the run; durations in seconds."""
        ids = pq.read_table(self.logs / "run/truth.parquet", filters=[("stream", "=", "clicks")])[
            "event_id"
        ].to_pylist()
        moments = self.readable.moments
        written = {event_id: int(event_id.rsplit(":", 1)[1]) for event_id in ids}
        truth = json.loads((self.logs / "run/truth.json").read_text(encoding="utf-8"))
        begun, ended = min(written.values()), max(moments[event_id] for event_id in ids)
        events = truth["clicks"]["events"] + truth["queries"]["events"]
        return {
            "load": asdict(self.load),
            "truth": truth,
            "written_to_readable": _spread(moments[event_id] - moment for event_id, moment in written.items()),
            "parts": self._parts(written),
            "steps": self._steps(begun),
            "events_per_second": round(events / (ended - begun) * 1e6, 1),
            "memory_mb": self.memory.peaks,
            "requests_a_batch": self.requests,
        }

    def _parts(self, written: dict[str, int]) -> dict[str, Any]:
        """Latency split in two: waiting for a batch to be planned, and the batch itself."""
        planned = {(row["sequence"], row["batch"]): _micros(row["planned_at"]) for row in self.lake.read("metrics")}
        waits, works = [], []
        for row in self.lake.read("joined", "event_id", "token"):
            *_, sequence, number = row["token"].split("/")
            if row["event_id"] in written and (sequence, int(number)) in planned:
                moment = planned[sequence, int(number)]
                waits.append(moment - written[row["event_id"]])
                works.append(self.readable.moments[row["event_id"]] - moment)
        return {"waiting for a batch": _spread(waits), "in its batch": _spread(works)}

    def _steps(self, begun: int) -> dict[str, Any]:
        """Seconds of each step of the join's batches since `begun`, whatever steps table `metrics` names."""
        rows = [r for r in self.lake.read("metrics") if r["sequence"] == "join" and _micros(r["planned_at"]) >= begun]
        names = [name for name in (rows[0] if rows else {}) if name.startswith("seconds_")]
        found = {name.removeprefix("seconds_"): _spread(1e6 * (row[name] or 0) for row in rows) for name in names}
        whole = _spread(1e6 * sum(row[name] or 0 for name in names) for row in rows)
        return {**found, "all steps": whole}


def write_live(folder: Path, traffic: Traffic) -> None:
    """Write traffic, in a process of its own, until it is all written or the process is asked to stop."""
    with suppress(KeyboardInterrupt):
        generate(folder, traffic)


def _spread(micros: Iterable[int | float]) -> dict[str, float] | None:
    found = spread(micros)
    return asdict(found) if found else None


def _micros(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6)


def report(result: dict[str, Any], console: Console) -> None:
    """Print the figures."""
    lines = {"from written to readable": result["written_to_readable"]}
    lines |= {f"  {name}": part for name, part in result["parts"].items()}
    lines |= {f"  step {name}": part for name, part in result["steps"].items()}
    console.print(f"\n{'seconds':28}{'count':>9}{'p50':>9}{'p90':>9}{'p99':>9}{'max':>9}")
    for name, part in lines.items():
        if part:
            figures = "".join(f"{part[key]:>9.2f}" for key in ("p50", "p90", "p99", "max"))
            console.print(f"{name:28}{part['count']:>9,}{figures}", highlight=False)
    console.print(f"{result['events_per_second']:,.0f} events/s from the first written to the last readable")
    if kinds := result["requests_a_batch"]:
        each = ", ".join(f"{kind} {count:,.0f}" for kind, count in sorted(kinds.items()))
        console.print(f"{sum(kinds.values()):,.0f} requests a batch, of joins and of retries: {each}", highlight=False)
    console.print(line(result["memory_mb"]), highlight=False, soft_wrap=True)


def options(arguments: list[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.latency", description="Latency from written to readable"
    )
    parser.add_argument("--rate", type=float, default=1000, help="events a second (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=180, help="length of the run (default %(default)s)")
    parser.add_argument("--clicks", type=float, default=0.1, help="part of the events that are clicks (%(default)s)")
    parser.add_argument("--warm", type=float, default=30, help="seconds of warm-up traffic (default %(default)s)")
    parser.add_argument("--delay", type=float, default=2, help="median seconds from a query to its click (%(default)s)")
    parser.add_argument("--lake", choices=["local", "s3"], default="local", help="where the lake lies (%(default)s)")
    parser.add_argument("--request-delay", type=float, default=0.0, help="seconds more for each request to S3")
    parser.add_argument("--source", choices=["files", "kafka"], default="files", help="what is read (%(default)s)")
    parser.add_argument("--interval", default="1s", help="batch.trigger_interval (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--through", choices=["airflow", "run"], default="airflow", help="who joins (%(default)s)")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/latency.json")
    chosen = parser.parse_args(arguments)
    if min(chosen.rate, chosen.seconds, chosen.clicks) <= 0 or chosen.clicks > 1 or min(chosen.warm, chosen.delay) < 0:
        parser.error("--rate, --seconds and --clicks are above 0, --clicks at most 1, --warm and --delay not below 0")
    return chosen


@contextmanager
def started(bench: Bench, screen: Screen) -> Iterator[Running | Alone]:
    """What joins the pipeline, until the end of the block."""
    if bench.load.through == "run":
        with alone(bench.folder / "run", bench.pipeline) as command:
            yield command
        return
    with running(bench.folder / "stack", bench.pipeline, screen.waiting("starting")) as stack:
        stack.unpause()
        yield stack


def measure(bench: Bench, console: Console) -> dict[str, Any]:
    """Run it all and check it. Errors: Problem unless every click is joined, and exactly once."""
    with Screen(console) as screen:
        with started(bench, screen) as stack:
            bench.run(stack, screen)
        screen.show({"phase": "counting every id"})
        logs = bench.logs
        verdict = oracle.examine(f"{logs}/*/clicks/*.jsonl", f"{logs}/*/queries/*.jsonl", bench.lake.folder)
    if not verdict.ok or verdict.joined != verdict.clicks:
        raise Problem(f"what was joined is not what was written, so there are no figures\n{verdict.text()}")
    return bench.result()


def main(arguments: list[str]) -> int:
    """Run the benchmark; 1 if anything was lost, doubled or too late."""
    chosen, console, about = options(arguments), Console(), machine()
    load = Load(
        chosen.rate, chosen.seconds, chosen.clicks, chosen.warm, chosen.seed, chosen.through, chosen.delay,
        chosen.lake, chosen.request_delay, chosen.source, chosen.interval,
    )  # fmt: skip
    folder = ROOT / ".run/benchmarks" / f"{time.strftime('latency-%Y%m%d-%H%M%S')}-{os.getpid()}"
    try:
        broker = shipping(folder / "logs", folder / "kafka") if load.source == "kafka" else nullcontext("")
        with lake_at(load.lake, folder, load.request_delay) as place, broker as servers:
            result = measure(Bench(folder, load, place, servers), console)
    except Problem as problem:
        print(f"clickjoin: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("clickjoin: interrupted, everything is stopped", file=sys.stderr)
        return 130
    report(result, console)
    result |= {"machine": about, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    save(chosen.out, result)
    console.print(f"every click joined exactly once; figures and machine in {chosen.out}", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
