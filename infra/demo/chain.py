"""`python -m demo.chain`: impressions, clicks and conversions, by two pipelines of which one reads the other's output.

The ZOZO logs are fed as in the other demonstration, and a conversion is invented for every third click, written at the
moment the click is: most conversions wait for a click that first has to meet its impression. Some come twice. Exits 1
unless each conversion whose click was joined is there once, with its click and that one's impression.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any
from zlib import crc32

import yaml
from rich.console import Console

from bootstrap import Problem

from .__main__ import Demo, fresh_folder
from .after import shown
from .feeder import Entry
from .lake import OUTCOMES, Lake
from .running import Running, running
from .screen import Screen
from .script import SEED
from .store import Store, lake_store

SECONDS = 45.0
LEASE = "15s"  # of both pipelines: a run of the first one ends so often, and starts one of the second
_LATER = 5_000_000  # microseconds from a click to its conversion


def conversion_of(entry: Entry) -> dict[str, str] | None:
    """The conversion that is invented for a line of the log of clicks, if it is one of those."""
    if entry.stream != "clicks" or not entry.event_id or crc32(entry.event_id.encode()) % 3:
        return None
    host, process, micros = entry.event_id.split(":")
    return {"event_id": f"{host}:{process}7:{int(micros) + _LATER}", "click_id": entry.event_id}


def write_sales(file: Path, upstream: Path, log: Path) -> None:
    """Write the pipeline of conversions: as that of clicks, whose output is its primary stream."""
    pipeline = yaml.safe_load(upstream.read_text(encoding="utf-8"))
    batch = pipeline["batch"] | {"lease": LEASE}
    upstream.write_text(yaml.safe_dump(pipeline | {"batch": batch}, sort_keys=False), encoding="utf-8")
    stream = {"event_id": "event_id", "event_time": "embedded"}
    source = {"kind": "pipeline", "name": pipeline["pipeline"]}
    conversions = {"source": {"kind": "files", "path": str(log)}, "primary_id": "click_id", "primary_time": "embedded"}
    # A click may wait for its impression for as long as it likes: a conversion waits longer.
    retry = pipeline["retry"] | {"max_age": "60s", "max_attempts": 6}
    pipeline |= {"pipeline": file.stem, "primary": stream | {"source": source}, "foreign": stream | conversions}
    file.write_text(yaml.safe_dump(pipeline | {"retry": retry, "batch": batch}, sort_keys=False), encoding="utf-8")


class ChainDemo(Demo):
    """The demonstration of clicks, and one more pipeline behind it."""

    def __init__(self, folder: Path, seconds: float, seed: int, store: Store) -> None:
        super().__init__(folder, seconds, seed, store)
        self.log = folder / "logs/conversions/0.jsonl"
        self.log.parent.mkdir(parents=True)
        write_sales(self.pipeline.with_name("sales.yaml"), self.pipeline, self.log)
        self.sales = Lake(store.folder / "sales")
        self.written: list[dict[str, str]] = []

    def convert(self, stop: Callable[[], bool]) -> None:
        """Write conversions as clicks are written; every tenth twice."""
        seen = 0
        with self.log.open("a", encoding="utf-8", buffering=1) as log:
            while not stop():
                entries = self.feeder.entries[seen:]
                seen += len(entries)
                for made in filter(None, map(conversion_of, entries)):
                    self.written.append(made)
                    times = 2 if len(self.written) % 10 == 0 else 1
                    log.write(f"{json.dumps(made)}\n" * times)
                time.sleep(0.05)

    def facts(self) -> dict[str, str]:
        """How far everything is, for the screen."""
        more = {
            "conversions written": f"{len(self.wanted()):,}",
            "conversions joined": f"{self.sales.rows('joined'):,}",
            "conversions pending": f"{len(self.sales.waiting()):,}",
        }
        return super().facts() | more

    def missing(self) -> str:
        """What is not yet where it belongs; empty if nothing."""
        left = len(self.wanted().keys() - set().union(*map(self.sales.ids, OUTCOMES)))
        texts = (super().missing(), f"{left} conversions have no outcome" if left else "")
        return ", ".join(text for text in texts if text)

    def wanted(self) -> dict[str, str]:
        """The click of each conversion."""
        return {made["event_id"]: made["click_id"] for made in self.written}

    def faults(self) -> Iterator[str]:
        """What is wrong, a sentence each: counted from the logs, without the product's own code."""
        clicks = {row["event_id"]: row["primary_id"] for row in self.lake.read("joined", "event_id", "primary_id")}
        rows = self.sales.read("joined", "event_id", "primary_id", "primary_record")
        wanted = {name: click for name, click in self.wanted().items() if click in clicks}
        found = [row["event_id"] for row in rows]
        if len(set(found)) < len(found):
            yield f"{len(found) - len(set(found))} conversions are there twice"
        if lost := wanted.keys() - set(found):
            yield f"{len(lost)} conversions whose click was joined are not there, such as {min(lost)}"
        if more := set(found) - wanted.keys():
            yield f"{len(more)} conversions are there whose click was never joined, such as {min(more)}"
        wrong = [row["event_id"] for row in rows if not _agrees(row, wanted, clicks)]
        if wrong:
            yield f"{len(wrong)} conversions have another click or impression than their own, such as {min(wrong)}"


def _agrees(row: dict[str, Any], wanted: dict[str, str], clicks: dict[str, str]) -> bool:
    """Whether a conversion has its click, and in it the click's own record and impression."""
    click, record = wanted.get(row["event_id"], ""), json.loads(row["primary_record"])
    named = (row["primary_id"], record["event_id"], record["foreign_record"]["event_id"])
    return set(named) == {click} and record["primary_record"]["event_id"] == clicks.get(click)


def demonstrate(folder: Path, seconds: float, seed: int, console: Console, store: Store) -> list[str]:
    """Start the stack, feed, watch, stop the stack; returns what is wrong, and prints what came of it."""
    demo, stop = ChainDemo(folder, seconds, seed, store), Event()
    with Screen(console) as screen:
        waiting = screen.waiting("starting Spark Connect and Airflow")
        with running(folder / "stack", demo.pipeline, waiting) as stack:
            _watch(demo, stack, screen, stop)
            screen.show({"all done": "stopping Spark Connect and Airflow"})
    faults, found = list(demo.faults()), demo.sales.rows("joined")
    given_up = demo.sales.rows("unjoinable")
    console.print(
        f"{demo.lake.rows('joined')} clicks met their impressions, and {found} conversions those clicks; {given_up} "
        f"given up, whose click was; of {len(demo.wanted())} in all",
        highlight=False,
    )
    sale = min(demo.sales.ids("joined"), default="")
    console.print("follow one through both pipelines, from either end:", highlight=False)
    for file, name in ((demo.pipeline.with_name("sales.yaml"), sale), (demo.pipeline, demo.wanted().get(sale, ""))):
        command = f"  .venv/bin/clickjoin explain {name} --config {shown(file)}"
        console.print(command, highlight=False, markup=False, soft_wrap=True)
    return faults


def _watch(demo: ChainDemo, stack: Running, screen: Screen, stop: Event) -> None:
    stack.unpause()
    stack.beside("sales").unpause()
    screen.say(f"Airflow {stack.url} (user admin, password in {stack.passwords})")
    screen.say("each run of clickjoin_join__zozo that joins anything starts one of clickjoin_join__sales, by its asset")
    converting = Thread(target=demo.convert, args=(stop.is_set,), daemon=True)
    converting.start()
    try:
        demo.run(stack, screen)
    finally:
        stop.set()
        converting.join()


def main(arguments: list[str]) -> int:
    """Run the demo; a known problem is one line, never a traceback."""
    parser = argparse.ArgumentParser(prog="python -m demo.chain", description="Three streams, two pipelines")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long to feed (default %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="what goes wrong, and where (default %(default)s)")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        folder = fresh_folder()
        with lake_store("local", folder) as store:
            faults = demonstrate(folder, chosen.seconds, chosen.seed, Console(), store)
    except Problem as problem:
        print(f"clickjoin: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("clickjoin: interrupted, everything is stopped", file=sys.stderr)
        return 130
    for fault in faults:
        print(f"clickjoin: {fault}", file=sys.stderr)
    if not faults:
        print("the sums agree: each conversion has its click and that one's impression, once")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
