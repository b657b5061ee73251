"""Runs the contenders of each query in turns and reports rates and ratios of the one run."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.flink.setting import FLINK_2_3
from benchmarks.flink.warm import Flink
from benchmarks.folders import remove
from benchmarks.latency_machine import machine
from benchmarks.windows import flink as sql
from benchmarks.windows import nexmark, product, streaming
from benchmarks.windows.events import Ended, Load, counted, first, require, zipf
from bootstrap import ROOT, Problem
from clickjoin.spark.session import in_process

Contender = Callable[[Load, Path], Ended]
QUERIES = ("counts", "q5", "q7")
OURS, FLINK, BY_WINDOW, BY_STATE = "clickjoin", "Flink SQL", "groupBy(window)", "transformWithState"
WARM, WARM_BIDS = 10_000, 50_000


@dataclass(frozen=True)
class Contest:
    """A query: its contenders, what each is given, and what must come of it."""

    query: str
    contenders: dict[str, Contender]
    loads: dict[str, Load]
    truths: dict[str, pa.Table]

    def turn(self, folder: Path) -> dict[str, Ended]:
        """Each, run once. Errors: SystemExit for a wrong result."""
        took = {}
        for name, run in self.contenders.items():
            own = Path(tempfile.mkdtemp(dir=folder))
            ended = run(self.loads[name], own)
            found = ended.rows
            if self.query == "counts":  # who ends at the end of the input says the last event's own window, too
                found = found.filter(pc.less(found["window_start"], self.loads[name].until))
            rows = require(f"{name}, {self.query}", found, self.truths[name])
            rate = self.loads[name].events / ended.seconds
            print(f"  {self.query}, {name}: {ended.seconds:.2f} s, {rate:,.0f} events/s, {rows:,} rows", flush=True)
            took[name] = ended
            remove(own)
        return took


@dataclass(frozen=True)
class Rivals:
    """Flink's Java, and the ways of Structured Streaming."""

    flink: Flink | None
    streaming: dict[str, Contender]


def compared(of: Contest, turns: list[dict[str, Ended]]) -> dict[str, Any]:
    """Medians and ratios."""
    found = {}
    for name, load in of.loads.items():
        seconds, paces = ([getattr(turn[name], what) for turn in turns] for what in ("seconds", "steady"))
        found[name] = {
            "events": load.events, "rows": of.truths[name].num_rows, "seconds": [round(one, 2) for one in seconds],
            "median": round(statistics.median(seconds), 2),
            "events_a_second": round(load.events / statistics.median(seconds)),
            "steady_events_a_second": round(statistics.median(paces)),
        }  # fmt: skip
    for part in found.values():
        part["clickjoin_against_it"] = round(found[OURS]["events_a_second"] / part["events_a_second"], 2)
        if part["steady_events_a_second"]:
            part["clickjoin_against_steady"] = round(found[OURS]["events_a_second"] / part["steady_events_a_second"], 2)
    return found


def table(found: dict[str, dict[str, Any]]) -> str:
    """As Markdown."""
    heads = ("", "", "events", "rows out", "seconds", "events/s", "… when steady", "clickjoin against it", "… steady")
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    for query, parts in found.items():
        for name, part in parts.items():
            cells = (f"{part[what]:,}" for what in ("events", "rows", "median", "events_a_second"))
            pace = f"{part['steady_events_a_second']:,}" if part["steady_events_a_second"] else ""
            ratios = f"{part['clickjoin_against_it']} | {part.get('clickjoin_against_steady', '')}"
            lines.append(f"| {query} | {name} | {' | '.join(cells)} | {pace} | {ratios} |")
    return "\n".join(lines)


def options(arguments: list[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.windows", description="Windows by key, side by side")
    parser.add_argument(
        "--events", type=int, default=1_000_000, help="of q5 and q7: persons, auctions and bids together"
    )
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=100_000, help="events of a batch; Flink has none")
    parser.add_argument("--most", type=int, default=50_000, help="events that transformWithState is given at most")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--query", choices=QUERIES, action="append", help="these alone")
    parser.add_argument("--only", choices=[BY_STATE, BY_WINDOW, FLINK], action="append", help="beside clickjoin")
    parser.add_argument("--memory", default="3g", help="heap of each Java (default %(default)s)")
    parser.add_argument("--json", type=Path, default=ROOT / "benchmarks/results/windows.json", help="where figures go")
    return parser.parse_args(arguments)


def ours(query: str, batch: int, load: Load, folder: Path) -> Ended:
    """This project's run of a query."""
    if query != "counts":
        return nexmark.run(query, batch, load, folder)
    lake = product.Lake(folder / "own", ["item"], {"args": {"window": "1m"}}, batch)
    lake.fill(load)
    return Ended(lake.drained(), lake.reported())


def contest(query: str, rivals: Rivals, chosen: argparse.Namespace, folder: Path, events: int) -> Contest:
    """A query with its events laid."""
    contenders: dict[str, Contender] = {OURS: partial(ours, query, chosen.batch)}
    if rivals.flink:
        contenders[FLINK] = partial(sql.run, rivals.flink, query)
    if query != "counts":
        load = nexmark.bids(folder, events, chosen.batch)
        truth = nexmark.truth(query, load)
        return Contest(query, contenders, dict.fromkeys(contenders, load), dict.fromkeys(contenders, truth))
    contenders |= rivals.streaming
    load = zipf(folder / "all", events, chosen.keys, chosen.batch)
    loads = dict.fromkeys(contenders, load)
    if BY_STATE in loads:
        loads[BY_STATE] = first(load, chosen.most, folder / "first", chosen.batch)
    return Contest(query, contenders, loads, {name: counted(own) for name, own in loads.items()})


def rivals_of(chosen: argparse.Namespace, folder: Path, stack: ExitStack) -> Rivals:
    """Those that are asked for, on sessions that end with the context."""
    names = chosen.only or [BY_WINDOW, BY_STATE, FLINK]
    found: dict[str, Contender] = {}
    ways = {BY_WINDOW: streaming.by_window, BY_STATE: streaming.by_processor}
    if "counts" in (chosen.query or QUERIES) and set(names) & set(ways):
        spark = in_process(cores="2", memory=chosen.memory)
        stack.callback(spark.stop)
        found = {name: partial(streaming.counts, spark, ways[name]) for name in ways if name in names}
    if FLINK not in names:
        return Rivals(None, found)
    FLINK_2_3.ensure()
    return Rivals(stack.enter_context(Flink(folder, chosen.memory)), found)


def contests(chosen: argparse.Namespace, folder: Path) -> dict[str, dict[str, Any]]:
    """Warm up, run in turns; figures by query."""
    found = {}
    with ExitStack() as stack:
        rivals = rivals_of(chosen, folder, stack)
        for query in chosen.query or QUERIES:
            print(f"{query}, to warm up:", flush=True)
            warm = WARM if query == "counts" else WARM_BIDS
            contest(query, rivals, chosen, folder / f"{query}-warm", warm).turn(folder)
            of = contest(query, rivals, chosen, folder / query, chosen.events)
            turns = []
            for turn in range(chosen.turns):
                print(f"{query}, turn {turn + 1}:", flush=True)
                turns.append(of.turn(folder))
            found[query] = compared(of, turns)
    return found


def main(arguments: list[str]) -> int:
    """Compare and print; figures as JSON."""
    chosen, about = options(arguments), machine()
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-windows-"))
    try:
        found = contests(chosen, folder)
    finally:
        remove(folder)
    print(f"\n{table(found)}")
    chosen.json.parent.mkdir(parents=True, exist_ok=True)
    result = {"keys": chosen.keys, "batch": chosen.batch, "found": found, "machine": about}
    chosen.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Problem as problem:
        sys.exit(f"clickjoin: {problem}")
