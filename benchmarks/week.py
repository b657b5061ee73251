"""Seven dates backfilled through Airflow beside a live join: what it does to the ids, and to the live join's latency.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.week --rate 200

The ZOZO logs of a week of 2019 are joined, then live traffic goes on while `airflow backfill create` runs over the
seven dates: first as a fill, then as a rebuild with another adapter. Ids and rows are counted before and after by code
that shares nothing with the product, and every id once more at the end. No figure is printed of a run that lost,
doubled or changed an id, nor of one where a DAG that waits for the dates ran too often or too early.
"""

from __future__ import annotations

import argparse
import gzip
import multiprocessing
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.engine import ENGINE
from benchmarks.latency import write_live
from benchmarks.latency_machine import machine, save
from bootstrap import ROOT, Problem
from clickjoin.generate import Traffic
from demo.backfill import backfill, downstream
from demo.lake import Lake
from demo.latency import Readable, spread
from demo.running import Running, write_pipeline
from demo.script import DATA
from stack import Stack
from tests import oracle

DATES = tuple(f"2019-11-{day}" for day in range(24, 31))
CLOSE = "clickjoin_close_day__week"
END = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp() * 1e6)
PATIENCE = 1800.0
STRAY = 10.0  # seconds in which a run too many would have begun
OTHER = "clickjoin.examples.adapters:TypedClick"


@dataclass(frozen=True)
class Phase:
    """One part of the run; moments in seconds since 1970."""

    name: str
    begun: float
    ended: float


def of_week(event_id: str) -> bool:
    """Whether an event is one of the ZOZO logs: the live ones are of today."""
    return int(event_id.rsplit(":", 1)[1]) < END


class Week:
    """The run in a folder of its own."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder, self.say = folder, say
        self.logs, self.file = folder / "logs", folder / "pipelines/week.yaml"
        self.phases: list[Phase] = []
        write_pipeline(
            self.file, folder / "lake", self.logs / "*/queries/*.jsonl", self.logs / "*/clicks/*.jsonl",
            close={"idle_timeout": "5s", "max_out_of_orderness": "1s", "late_window": "36500d"}, engine=ENGINE,
        )  # fmt: skip
        self.dags = shutil.copytree(ROOT / "dags", folder / "dags", ignore=shutil.ignore_patterns("pipelines"))
        (self.dags / "downstream.py").write_text(downstream("week"), encoding="utf-8")
        self.lake = Lake(folder / "lake/week")
        self.readable = Readable(self.lake.folder / "joined")
        self._unpack()

    def _unpack(self) -> None:
        for stream, name in (("impressions", "queries"), ("clicks", "clicks")):
            target = self.logs / "zozo" / name
            target.mkdir(parents=True)
            for file in (DATA / stream).iterdir():
                data = file.read_bytes()
                (target / file.name.removesuffix(".gz")).write_bytes(
                    gzip.decompress(data) if file.suffix == ".gz" else data
                )

    def run(self, rate: float, alone: float) -> None:
        """All phases. Errors: Problem where ids changed or something was not done in time."""
        with Stack(self.folder / "stack", pipelines=self.file.parent, dags=self.dags) as stack:
            Running(stack, "week").unpause()
            for dag in (CLOSE, "downstream"):
                stack.api("PATCH", f"/dags/{dag}?update_mask=is_paused", {"is_paused": False})
            before = self._joined_week()
            writer = self._live(rate)
            try:
                self._phase("live alone", lambda: time.sleep(alone))
                self._phase("beside a fill", lambda: self._backfill(stack))
                self._same(before, "the fill", self._downstream_runs(stack, 1), times=1)
                self.file.write_text(self.file.read_text().replace("clickjoin.joiner.adapter:BothRecords", OTHER))
                again = ("--reprocess-behavior", "completed", "--dag-run-conf", '{"mode": "rebuild"}')
                self._phase("beside a rebuild", lambda: self._backfill(stack, *again))
                self._same(before, "the rebuild", self._downstream_runs(stack, 2), times=2)
                self._phase("live alone again", lambda: time.sleep(alone))
            finally:
                writer.terminate()
                writer.join()
            self._until("the live clicks", self._all_joined)

    def _joined_week(self) -> Counter[str]:
        clicks = sum(len(file.read_text().splitlines()) for file in (self.logs / "zozo/clicks").iterdir())
        self._until("the week's clicks", lambda: sum(self._ids().values()) == clicks)
        self.say(f"{clicks} clicks of the week are joined")
        return self._ids()

    def _ids(self) -> Counter[str]:
        """Ids of the week in the output, and how often each is there."""
        return Counter(filter(of_week, (row["event_id"] for row in self.lake.read("joined", "event_id"))))

    def _same(self, before: Counter[str], what: str, runs: Counter[str], times: int) -> None:
        if self._ids() != before:
            raise Problem(f"{what} changed ids: {self._ids() - before} came, {before - self._ids()} went")
        if times > 1 and (new := self._made_by_other()) < sum(before.values()):
            raise Problem(f"{what} left {sum(before.values()) - new} rows of the week as they were")
        if runs != dict.fromkeys(DATES, times):
            raise Problem(f"after {what} the DAG downstream had run for {dict(runs)}")
        self.say(f"{what}: {sum(before.values())} ids as before, {len(DATES)} dates run downstream")

    def _made_by_other(self) -> int:
        """Rows of the week that the other adapter made."""
        rows = self.lake.read("joined", "event_id", "delay_seconds", "foreign_record")
        return sum(
            of_week(r["event_id"]) and r["delay_seconds"] is not None and r["foreign_record"] is None for r in rows
        )

    def _live(self, rate: float) -> Any:
        clicks = round(rate * 0.1 * 2 * PATIENCE)
        traffic = Traffic(
            clicks=clicks, queries=9 * clicks, rate=rate, seed=3, click_delay=2.0, click_spread=0.5, click_delay_max=5.0
        )
        work = (self.logs / "live", traffic)
        writer = multiprocessing.get_context("spawn").Process(target=write_live, args=work, daemon=True)
        writer.start()
        return writer

    def _phase(self, name: str, what: Callable[[], Any]) -> None:
        begun = time.time()
        what()
        self.phases.append(Phase(name, begun, time.time()))
        self.say(f"{name}: {self.phases[-1].ended - begun:.0f} s")

    def _backfill(self, stack: Stack, *more: str) -> None:
        states = backfill(stack, CLOSE, DATES, lambda done: self._until("the backfill", done), *more)
        if set(states) != {"success"}:
            raise Problem(f"runs of the backfill: {states}; see {stack.home.folder}/airflow/logs")

    def _downstream_runs(self, stack: Stack, times: int) -> Counter[str]:
        """How often DAG `downstream` ran for each date of the week, once it ran often enough."""

        def counted() -> Counter[str]:
            runs = stack.api("GET", "/dags/downstream/dagRuns?limit=100")["dag_runs"]
            keys = (run["partition_key"] for run in runs if run["state"] == "success")
            return Counter(key for key in keys if key in DATES)  # the live traffic's date runs too, when it closes

        self._until("DAG downstream", lambda: counted().total() >= times * len(DATES))
        time.sleep(STRAY)
        return counted()

    def _all_joined(self) -> bool:
        verdict = self.verdict()
        return not verdict.lost and verdict.pending == 0 and verdict.joined == verdict.clicks

    def verdict(self) -> oracle.Verdict:
        """Every id counted."""
        return oracle.examine(
            f"{self.logs}/*/clicks/*.jsonl", f"{self.logs}/*/queries/*.jsonl", self.lake.folder, rebuilt=True
        )

    def _until(self, what: str, done: Callable[[], Any]) -> None:
        end = time.monotonic() + PATIENCE
        while not done():
            if time.monotonic() > end:
                raise Problem(f"{what}: not done within {PATIENCE:.0f} s")
            self.readable.update()
            time.sleep(1.0)


def report(week: Week) -> dict[str, Any]:
    """Latency of the live clicks by the phase that they were written in, seconds."""
    week.readable.update()
    written = {event_id: int(event_id.rsplit(":", 1)[1]) for event_id in week.readable.moments}
    found: dict[str, Any] = {}
    for phase in week.phases:
        inside = [n for n, micros in written.items() if phase.begun <= micros / 1e6 < phase.ended]
        seen = spread(week.readable.moments[event_id] - written[event_id] for event_id in inside)
        found[phase.name] = {"seconds": round(phase.ended - phase.begun, 1), "latency": asdict(seen) if seen else None}
    return found


def main(arguments: list[str]) -> int:
    """Run it; 1 if anything was lost, doubled, changed or too late."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.week", description="Seven dates beside a live join")
    parser.add_argument("--rate", type=float, default=200, help="live events a second (default %(default)s)")
    parser.add_argument("--alone", type=float, default=120, help="seconds of live traffic alone (default %(default)s)")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/week.json")
    chosen, console, about = parser.parse_args(arguments), Console(), machine()
    week = Week(ROOT / ".run/benchmarks" / time.strftime("week-%Y%m%d-%H%M%S"), console.print)
    try:
        week.run(chosen.rate, chosen.alone)
    except Problem as problem:
        print(f"clickjoin: {problem}", file=sys.stderr)
        return 1
    verdict = week.verdict()
    console.print(verdict.text(), highlight=False)
    if not verdict.ok:
        return 1
    found = report(week)
    for name, part in found.items():
        console.print(f"{name:20} {part['seconds']:>7.0f} s   latency {part['latency']}", highlight=False)
    result = {"phases": found, "rate": chosen.rate, "machine": about}
    save(chosen.out, result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
