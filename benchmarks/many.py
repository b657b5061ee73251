"""Many pipelines with live traffic on one Airflow and one Spark: how late clicks are, and what all of it holds.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.many --pipelines 30 --rate 100 --seconds 120
    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.many --behind 500000
    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.many --pipelines 2 --alone

Each pipeline has logs and a lake of its own; all are one group, joined by one task of a long lease, which tries again
what waits (`--alone`: a task each). One process writes the traffic of all, nine queries to a click; what was written
before each had joined a click is counted and left out of the figures. `--behind`: the first pipeline finds so many
clicks of an outage then, and the figures are of the others. None is printed unless each click is in its output exactly
once, with its query.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.engine import ENGINE
from benchmarks.latency_machine import machine, save
from benchmarks.live import examined, heed_sigterm
from benchmarks.memory import line, watched
from bootstrap import ROOT, Problem
from clickjoin.generate import Traffic, generate
from demo.latency import Readable, spread
from demo.running import write_pipeline
from stack import Stack

POLL = 2.0
AFTER = 300.0  # seconds after the last line in which everything must be joined
CLICKS = 0.1
LIVE, BACKLOG = "live", "outage"


@dataclass(frozen=True)
class Load:
    """What is asked for: events a second of each pipeline; `warm`: seconds at most until each has joined a click."""

    pipelines: int
    rate: float
    seconds: float
    warm: float
    behind: int
    alone: bool = False
    lease: str = "10m"

    def live(self, number: int) -> Traffic:
        """Traffic of one pipeline, for as long as all may take to warm up, and to be measured."""
        events = round(self.rate * (self.warm + self.seconds))
        clicks = max(round(events * CLICKS), 1)
        return Traffic(
            clicks=clicks, queries=max(events - clicks, 1), rate=self.rate, seed=number, files=1,
            click_delay=2.0, click_spread=0.5, click_delay_max=5.0,
        )  # fmt: skip

    def outage(self) -> Traffic:
        """What the first pipeline has to catch up with, of an hour that is over."""
        return Traffic(clicks=self.behind, queries=9 * self.behind, duration=3600, seed=1_000, click_delay=2.0)


class Joined:
    """One pipeline in a folder: its file, its logs, and what can be read of its output."""

    def __init__(self, folder: Path, number: int, load: Load) -> None:
        self.name = f"p{number:02}"
        self.logs, self.table = folder / "logs" / self.name, folder / "lake" / self.name / "joined"
        sources = [str(self.logs / "*" / stream / "*.jsonl") for stream in ("queries", "clicks")]
        write_pipeline(
            folder / f"pipelines/{self.name}.yaml", folder / "lake", *sources,
            registry={"retention": "3d", "bucket": "1h", "shards": 4}, retry={},
            airflow={"dags": ["join"]} | ({} if load.alone else {"group": "live"}), batch={"lease": load.lease},
            engine=ENGINE,
        )  # fmt: skip
        for stream in ("queries", "clicks"):  # where no file matches, a run fails
            (self.logs / "none" / stream).mkdir(parents=True)
            (self.logs / "none" / stream / "0.jsonl").touch()
        self.readable = Readable(self.table)

    def latencies(self, since: float, until: float) -> list[int]:
        """Microseconds from written to readable, of clicks that were written between two moments (seconds)."""
        written = {name: int(name.rsplit(":", 1)[1]) for name in self.readable.moments}
        return [self.readable.moments[name] - at for name, at in written.items() if since * 1e6 <= at < until * 1e6]

    def missing(self) -> int:
        """Clicks that are written and cannot be read."""
        truths = [json.loads(path.read_text(encoding="utf-8")) for path in self.logs.glob("*/truth.json")]
        return sum(truth["joinable"] for truth in truths) - len(self.readable.moments)


def write_all(folders: Sequence[Path], load: Load, stop: Any) -> None:
    """Write the traffic of all pipelines in one process, until it is stopped."""
    from clickjoin.generate import Clock

    def sleep(seconds: float) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        time.sleep(seconds)

    def one(at: int) -> None:
        with suppress(KeyboardInterrupt):
            generate(folders[at], load.live(at), clock=Clock(sleep=sleep))

    with ThreadPoolExecutor(len(folders)) as pool:
        list(pool.map(one, range(len(folders))))


def measure(folder: Path, load: Load) -> dict[str, Any]:
    """Run it all. Errors: Problem where something is not joined in time, or not as it was written."""
    each = [Joined(folder, number, load) for number in range(load.pipelines)]
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    writer = context.Process(target=write_all, args=([one.logs / LIVE for one in each], load, stop), daemon=True)
    env = {"AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False"}
    if load.alone:  # a join holds a slot for its whole lease, and two while it hands over
        env["AIRFLOW__CORE__PARALLELISM"] = str(2 * load.pipelines + 8)
    with Stack(folder / "home", pipelines=folder / "pipelines", env=env, timeout=600):
        writer.start()
        begun = time.time()
        _until(each, lambda: all(one.readable.moments for one in each), load.warm, "warm")
        warmed = time.time()
        print(f"each has joined a click {warmed - begun:.0f} s after the first was written", flush=True)
        if load.behind:
            generate(each[0].logs / BACKLOG, load.outage())
        since = time.time()
        with watched(rest="benchmark") as memory:
            _until(each, lambda: time.time() >= since + load.seconds, load.seconds + POLL, "measured")
            until = time.time()
        stop.set()
        writer.join()
        _until(each, lambda: not any(one.missing() for one in each), AFTER, "the rest")
    for one in each:
        seen = examined(
            [path.parent for path in one.logs.glob("*/truth.json")], one.table, folder / "scratch" / one.name
        )
        if not seen.exactly_once:
            raise Problem(f"{one.name}: what was joined is not what was written: {seen}")
    return _figures(each, load, since, until) | {"memory_mb": memory.peaks, "warm": warmed - begun}


def _until(each: Sequence[Joined], done: Any, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        for one in each:
            one.readable.update()
        if time.monotonic() > deadline and not done():
            late = {one.name: len(one.readable.moments) for one in each if one.missing() or not one.readable.moments}
            raise Problem(f"{what}: not in {seconds:.0f} s; readable by now: {late}")
        time.sleep(POLL)


def _figures(each: Sequence[Joined], load: Load, since: float, until: float) -> dict[str, Any]:
    found = {one.name: one.latencies(since, until) for one in each[1 if load.behind else 0 :]}
    whole = spread(moment for held in found.values() for moment in held)
    own = {name: spread(held) for name, held in found.items()}
    worst = max(own.items(), key=lambda item: item[1].p90 if item[1] else 0)
    return {
        "load": asdict(load),
        "all": asdict(whole) if whole else None,
        "worst": {"pipeline": worst[0], **(asdict(worst[1]) if worst[1] else {})},
    }


def report(found: dict[str, Any]) -> str:
    """As Markdown."""
    columns = ("count", "p50", "p90", "p99", "max")
    lines = [
        f"| clicks, written to readable, seconds | {' | '.join(columns)} |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, part in (("all pipelines", found["all"]), (f"the worst, {found['worst']['pipeline']}", found["worst"])):
        lines.append(f"| {name} | {' | '.join(f'{part[key]:,}' for key in columns)} |")
    return "\n".join([*lines, "", line(found["memory_mb"])])


def main(arguments: list[str]) -> int:
    """Run the benchmark; 1 if anything was lost, doubled or too late."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pipelines", type=int, default=30)
    parser.add_argument("--rate", type=float, default=100, help="events a second of each (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=120, help="that are measured (default %(default)s)")
    parser.add_argument("--warm", type=float, default=600, help="at most, until each has joined a click")
    parser.add_argument("--behind", type=int, default=0, help="clicks that the first pipeline has to catch up with")
    parser.add_argument("--alone", action="store_true", help="a task for each pipeline, not one for all")
    parser.add_argument("--lease", default="10m", help="of a task (default %(default)s)")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/many.json")
    given = parser.parse_args(arguments)
    about = machine()
    load = Load(given.pipelines, given.rate, given.seconds, given.warm, given.behind, given.alone, given.lease)
    heed_sigterm()
    with tempfile.TemporaryDirectory(prefix="clickjoin-many-") as folder:
        try:
            found = measure(Path(folder), load)
        except Problem as problem:
            print(f"clickjoin: {problem}", file=sys.stderr)
            return 1
    print(f"\n{report(found)}\nevery click joined exactly once")
    save(given.out, found | {"machine": about})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
