"""`python -m demo`: real clicks meet their impressions, exactly once, by DAGs in Airflow.

Starts Spark and Airflow in a fresh folder, feeds the ZOZO logs, waits until every click has its place, stops
everything (`--keep`: nothing), prints the sums and what to look at next. Exits 1 if they do not agree.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event, Thread

from rich.console import Console

from bootstrap import ROOT, Problem

from . import topics
from .after import ended, next_steps, shown
from .feeder import SECONDS, Feeder
from .lake import OUTCOMES, Lake
from .latency import Readable
from .progress import GIVE_UP, Progress
from .report import Tally, a_row, latencies, sums, tally, times, written_by
from .running import Running, running, write_pipeline
from .screen import Screen
from .script import SEED, Script, script
from .shipping import ObjectFeeder
from .store import Store, lake_store

POLL = 1.0
RUNS_EVERY = 4


class Demo:
    """One demonstration in a folder of its own."""

    def __init__(self, folder: Path, seconds: float, seed: int, store: Store, **fields: str) -> None:
        self.folder = folder
        self.pipeline = folder / "pipelines/zozo.yaml"
        logs = folder / "logs"
        streams = (_source(store, logs, name) for name in ("impressions", "clicks"))
        write_pipeline(self.pipeline, store.lake, *streams, **fields)
        self.feeder = _feeder(store, script(seconds, seed), logs, folder / "ledger.csv")
        self.lake = Lake(store.folder / "zozo")
        self.readable = Readable(self.lake.folder / "joined")
        self._runs = "none"
        self._warm = Event()
        self._progress = Progress()

    def run(self, stack: Running, screen: Screen) -> None:
        """Feed, and watch until every click has its place. Errors: Problem once nothing changes any more."""
        stop, failed = Event(), list[BaseException]()
        feed = partial(self.feeder.feed, self._warm.is_set, stop.is_set)
        feeding = Thread(target=_caught, args=(feed, failed), daemon=True)
        feeding.start()
        try:
            for turn in count():
                if turn % RUNS_EVERY == 0:
                    stack.require_alive()
                    self._runs = stack.runs()
                screen.show(self.facts())
                if failed:
                    raise Problem(f"the feeder stopped: {failed[0]}")
                if self._is_done():
                    return
                self._require_progress(stack, screen)
                time.sleep(POLL)
        finally:
            stop.set()
            feeding.join()

    def _is_done(self) -> bool:
        if self.missing():
            return False
        if self.readable.moments:
            self._warm.set()
        return self.feeder.done

    def _require_progress(self, stack: Running, screen: Screen) -> None:
        if self._progress.look((self.lake.versions(), len(self.feeder.entries))) > GIVE_UP:
            raise Problem(
                f"no table has changed for {GIVE_UP / 60:.0f} minutes: {self.missing()}; logs of the tasks are in "
                f"{stack.logs}"
            )
        if remark := self._progress.remark():
            screen.say(remark)

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


def _source(store: Store, logs: Path, stream: str) -> str | dict[str, str]:
    if store.servers:
        return topics.source(store.servers, stream)
    return f"{store.logs or logs}/{stream}/{'dt=*/*.jsonl' if store.put else '*.jsonl'}"


def _feeder(store: Store, plan: Script, logs: Path, ledger: Path) -> Feeder:
    if store.servers:
        return topics.TopicFeeder(plan, logs, ledger, servers=store.servers)
    return ObjectFeeder(plan, logs, ledger, put=store.put) if store.put else Feeder(plan, logs, ledger)


def _caught(work: Callable[[], None], failed: list[BaseException]) -> None:
    try:
        work()
    except Exception as error:
        failed.append(error)


def demonstrate(
    folder: Path, seconds: float, seed: int, console: Console, store: Store, *, keep: bool = False, **fields: str
) -> Tally:
    """Start the stack, feed, watch, stop the stack unless it is kept, print what came of it and what to do next."""
    demo, begun, left_up = Demo(folder, seconds, seed, store, **fields), time.monotonic(), ""
    starting = "starting Spark Connect and Airflow"
    try:
        with Screen(console) as screen:
            with running(folder / "stack", demo.pipeline, screen.waiting(starting), keep=keep) as stack:
                _watch(demo, stack, screen)
                left_up = _left_up(stack) if keep else ""
                screen.show({"all done": "" if keep else "stopping Spark Connect and Airflow"})
            screen.say(
                f"every click has its place, {time.monotonic() - begun:.0f} s after the start: {demo.lake.folder}"
            )
        found = tally(demo.lake, demo.feeder.entries)
        spreads = latencies(demo.lake, demo.feeder.entries, demo.readable, demo.feeder.plan.warm)
        console.print(sums(found), times(spreads))
        for line in (written_by(demo.lake.commits()), *a_row(demo.lake)):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        return found
    finally:
        for line in _after(demo, store, left_up) if demo.feeder.entries else ():
            console.print(line, highlight=False, markup=False, soft_wrap=True)


def _after(demo: Demo, store: Store, left_up: str) -> list[str]:
    if store.server:
        return ended(demo.lake, *store.server)
    return next_steps(demo.lake, demo.feeder.entries, demo.pipeline, left_up)


def _watch(demo: Demo, stack: Running, screen: Screen) -> None:
    seconds, lines = demo.feeder.plan.seconds, len(demo.feeder.plan.lines)
    stack.unpause()
    screen.say(f"Airflow {stack.url} (user admin, password in {stack.passwords})")
    screen.say("warming up: a new Spark server takes half a minute or more for its first batches")
    screen.say(f"then feeding {lines:,} lines of real logs in {seconds:g} s, {lines / seconds:,.0f}/s")
    demo.run(stack, screen)


def _left_up(stack: Running) -> str:
    stop = f"CLICKJOIN_HOME={shown(stack.folder)} make down"
    return f"Airflow is up at {stack.url} (user admin, password in {stack.passwords}); `{stop}` stops it"


def _servers(source: str, folder: Path) -> AbstractContextManager[str]:
    return topics.broker(folder) if source == "kafka" else nullcontext("")


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
    parser.add_argument("--keep", action="store_true", help="leave Spark and Airflow up at the end")
    parser.add_argument(
        "--lake", choices=("local", "s3"), default="local", help="s3: on an S3 server of its own, with logs"
    )
    parser.add_argument("--source", choices=("files", "kafka"), default="files", help="kafka: topics of its own broker")
    parser.add_argument("--engine", choices=("spark", "arrow"), default="spark", help="what its batches run on")
    chosen = parser.parse_args(arguments)
    # A plain kill must stop the servers as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if chosen.keep and (chosen.lake, chosen.source) != ("local", "files"):
            raise Problem(
                "KEEP=1 is for logs and a lake on disk: the S3 server, or the broker, ends with the demo; leave KEEP=1 "
                "out, or LAKE=s3 and SOURCE=kafka"
            )
        folder = fresh_folder()
        with lake_store(chosen.lake, folder) as store, _servers(chosen.source, folder) as servers:
            store = store._replace(servers=servers)
            found = demonstrate(
                folder, chosen.seconds, chosen.seed, Console(), store, keep=chosen.keep, engine=chosen.engine
            )
    except Problem as problem:
        print(f"clickjoin: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("clickjoin: interrupted, everything is stopped", file=sys.stderr)
        return 130
    for fault in found.faults:
        print(f"clickjoin: the sums do not agree: {fault}", file=sys.stderr)
    if not found.faults:
        clicks = found.streams["clicks"]
        parts = [f"{count:,} {name}" for name, count in {**found.outcomes, "pending": found.pending}.items() if count]
        print(
            f"the sums agree: {sum(each.lines for each in found.streams.values()):,} lines are accounted for; "
            f"{clicks.accepted:,} clicks accepted = {' + '.join(parts)}; each is in one table, once"
        )
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
