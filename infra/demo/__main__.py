"""`python -m demo`: real clicks meet their impressions, exactly once, by DAGs in Airflow.

Starts Spark and Airflow in a fresh folder, feeds the ZOZO logs, waits until every click has its place, stops
everything, and prints the sums. Exits 1 if they do not agree.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from threading import Event, Thread

from rich.console import Console

from bootstrap import ROOT, Problem

from .feeder import SECONDS, Feeder
from .lake import OUTCOMES, Lake
from .latency import Readable
from .report import Tally, latencies, sums, tally, times
from .running import Running, running, write_pipeline
from .screen import Screen
from .script import SEED, script

POLL = 1.0
RUNS_EVERY = 4
AFTER = 240.0  # seconds for Spark to warm up, and to be done after the last line, all in all


class Demo:
    """One demonstration in a folder of its own."""

    def __init__(self, folder: Path, seconds: float, seed: int) -> None:
        self.folder = folder
        self.pipeline = folder / "pipelines/zozo.yaml"
        logs = folder / "logs"
        write_pipeline(self.pipeline, folder / "lake", logs / "impressions/*.jsonl", logs / "clicks/*.jsonl")
        self.feeder = Feeder(script(seconds, seed), logs, folder / "ledger.csv")
        self.lake = Lake(folder / "lake/zozo")
        self.readable = Readable(self.lake.folder / "joined")
        self._runs = "none"
        self._warm = Event()

    def run(self, stack: Running, screen: Screen) -> None:
        """Feed, and watch until every click has its place. Errors: Problem once that takes too long."""
        warm, stop, failed = self._warm, Event(), list[BaseException]()
        feeding = Thread(target=_caught, args=(lambda: self.feeder.feed(warm.is_set, stop.is_set), failed), daemon=True)
        feeding.start()
        deadline = time.monotonic() + AFTER
        try:
            for turn in count():
                self._runs = stack.runs() if turn % RUNS_EVERY == 0 else self._runs
                screen.show(self.facts())
                if failed:
                    raise Problem(f"the feeder stopped: {failed[0]}")
                if not warm.is_set() and self.readable.moments and not self.missing():
                    warm.set()
                    deadline += self.feeder.plan.seconds
                if self.feeder.done and not self.missing():
                    return
                if time.monotonic() > deadline:
                    raise Problem(f"it takes too long: {self.missing()}; logs of the tasks are in {stack.logs}")
                time.sleep(POLL)
        finally:
            stop.set()
            feeding.join()

    def facts(self) -> dict[str, str]:
        """How far everything is, for the screen."""
        self.readable.update()
        spread = latencies(self.lake, self.feeder.entries[:], self.readable, self.feeder.plan.warm)["all clicks"]
        return {
            "now": self.phase(),
            "lines fed": f"{len(self.feeder.entries):,} of {len(self.feeder.plan.lines):,}",
            "joined": f"{len(self.readable.moments):,}",
            "pending": f"{len(self.lake.waiting()):,}",
            "unjoinable": f"{self.lake.rows('unjoinable'):,}",
            "quarantined": f"{self.lake.rows('quarantine'):,}",
            "DAG run": self._runs,
            "batches": f"{self.lake.rows('metrics'):,}",
            "latency p50/p90": f"{spread.p50:.1f}/{spread.p90:.1f} s" if spread else "-",
        }

    def phase(self) -> str:
        """What goes on: the first batches of a new Spark server take far longer than all after them."""
        if not self._warm.is_set():
            return "warming up: Spark's first batches"
        return "all fed, waiting for retries" if self.feeder.done else "feeding"

    def missing(self) -> str:
        """What is not yet where it belongs; empty if nothing."""
        entries = self.feeder.entries
        clicks = {entry.event_id for entry in entries if entry.stream == "clicks" and entry.event_id}
        left = len(clicks.difference(*map(self.lake.ids, OUTCOMES)))
        lines = len(entries) - sum(self.lake.rows(name) for name in ("primary", "foreign", "quarantine"))
        wanting = {f"{left} clicks have no outcome": left, f"{lines} lines are not landed": lines}
        return ", ".join(text for text, number in wanting.items() if number)


def _caught(work: Callable[[], None], failed: list[BaseException]) -> None:
    try:
        work()
    except Exception as error:
        failed.append(error)


def demonstrate(folder: Path, seconds: float, seed: int, console: Console) -> Tally:
    """Start the stack, feed, watch, stop the stack, print what came of it."""
    demo, begun = Demo(folder, seconds, seed), time.monotonic()
    lines = len(demo.feeder.plan.lines)
    with Screen(console) as screen:
        with running(folder / "stack", demo.pipeline, screen.waiting("starting Spark Connect and Airflow")) as stack:
            stack.unpause()
            screen.say(f"Airflow {stack.url} (user admin, password in {stack.passwords})")
            screen.say("warming up: a new Spark server takes half a minute or more for its first batches")
            screen.say(f"then feeding {lines:,} lines of real logs in {seconds:g} s, {lines / seconds:,.0f}/s")
            demo.run(stack, screen)
            screen.show({"all done": "stopping Spark Connect and Airflow"})
        screen.say(f"every click has its place, {time.monotonic() - begun:.0f} s after the start: {demo.lake.folder}")
    found = tally(demo.lake, demo.feeder.entries)
    console.print(sums(found), times(latencies(demo.lake, demo.feeder.entries, demo.readable, demo.feeder.plan.warm)))
    return found


def fresh_folder() -> Path:
    """A new folder under `.run/demo`, or under the folder that CLICKJOIN_HOME names."""
    base = Path(os.environ.get("CLICKJOIN_HOME") or ROOT / ".run").absolute() / "demo"
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for name in (stamp, *(f"{stamp}-{number}" for number in range(2, 100))):
        try:
            (base / name).mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise Problem(f"cannot write to {base}: {error.strerror}; give another folder as CLICKJOIN_HOME") from error
        return base / name
    raise Problem(f"no free name left in {base}; remove old demonstrations")


def main(arguments: list[str]) -> int:
    """Run the demo; a known problem is one line, never a traceback."""
    parser = argparse.ArgumentParser(prog="python -m demo", description="Join the ZOZO clicks to their impressions")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long to feed (default %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="what goes wrong, and where (default %(default)s)")
    chosen = parser.parse_args(arguments)
    # A plain kill must stop the servers as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        found = demonstrate(fresh_folder(), chosen.seconds, chosen.seed, Console())
    except Problem as problem:
        print(f"clickjoin: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("clickjoin: interrupted, everything is stopped", file=sys.stderr)
        return 130
    for fault in found.faults:
        print(f"clickjoin: the sums do not agree: {fault}", file=sys.stderr)
    if not found.faults:
        print("the sums agree: every line and every click is accounted for, once")
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
