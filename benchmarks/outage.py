"""An outage of `clickjoin run`, and its way back: what is written, when it is killed and started, what is seen.

Three phases: usual traffic; the outage, whose logs are written while nobody joins; fresh traffic, during which the
backlog goes.
"""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.engine import ENGINE
from benchmarks.live import Servers, Writer, examined, joining, lines, truth
from benchmarks.memory import Memory, watched
from bootstrap import Problem
from clickjoin.generate import Traffic
from demo.lake import Lake
from demo.latency import Readable, Spread, spread
from demo.running import write_pipeline
from stack.processes import Server

POLL, TELL = 1.0, 10.0
WINDOW, STEADY = 5_000_000, 3  # so many windows of so many microseconds of fresh clicks as fast as before: live again
USUAL, OUTAGE, FRESH = PHASES = ("usual", "outage", "fresh")
SEEDS = {name: number for number, name in enumerate(PHASES, 1)}  # the generator makes them the second part of its ids
Pairs = list[tuple[int, int]]


@dataclass(frozen=True)
class Load:
    """What is asked for: seconds of outage and of usual traffic, events a second, which part of them clicks are."""

    outage: float
    rate: float
    clicks: float
    warm: float
    patience: float

    def traffic(self, name: str) -> Traffic:
        """Traffic of one phase; that of the outage lies in the past."""
        seconds = {USUAL: self.warm, OUTAGE: self.outage, FRESH: self.patience}[name]
        events = round(self.rate * seconds)
        clicks = round(events * self.clicks)
        past = name == OUTAGE
        return Traffic(
            clicks=clicks, queries=max(events - clicks, 1), seed=SEEDS[name],
            click_delay=2.0, click_spread=0.5, click_delay_max=5.0,
            rate=0 if past else self.rate, duration=seconds if past else None,
        )  # fmt: skip


class Run:
    """One run in a folder of its own. Moments are microseconds since 1970."""

    def __init__(self, folder: Path, load: Load) -> None:
        self.folder, self.load, self.logs = folder, load, folder / "logs"
        self.file = folder / "pipelines/shop.yaml"
        write_pipeline(
            self.file, folder / "lake", self.logs / "*/queries/*.jsonl", self.logs / "*/clicks/*.jsonl",
            registry={"retention": "3d", "bucket": "1h", "shards": 4},
            engine=ENGINE,
        retry={},  # as by default: those of the ZOZO logs give up soon
        )  # fmt: skip
        self.lake = Lake(folder / "lake/shop")
        self.servers = Servers(folder / "run")
        self.client: Server
        self.clicks: dict[str, Pairs] = {name: [] for name in PHASES}  # written (for the outage: its event), readable
        self.restarted, self.memory = 0, Memory()
        self._readable, self._reported = Readable(self.lake.folder / "joined"), 0.0

    def go(self) -> None:
        """All of it. Errors: Problem where something is not done in time, or a process ends by itself."""
        with self.servers:
            self._start()
            self._phase(USUAL, lambda _: self.missing(USUAL) == 0)
            self.servers.kill(self.client)
            print(f"usual: {said(self.usual())}; killed; {self.load.outage:,.0f} s of logs are written", flush=True)
            self._phase(OUTAGE, lambda writer: not writer.alive())
            with watched(rest="benchmark") as self.memory:
                self._phase(FRESH, self._catch_up)
            self.servers.stop(self.client)

    def _start(self) -> None:
        self.client = self.servers.start("run", joining(self.file))

    def _phase(self, name: str, done: Callable[[Writer], bool]) -> None:
        with Writer(self.logs / name, self.load.traffic(name)) as writer:
            self._until(name, lambda: done(writer))

    def _catch_up(self, writer: Writer) -> bool:
        if not self.restarted:
            if any((self.logs / FRESH).glob("clicks/*")):
                self.restarted = time.time_ns() // 1000
                self._start()
            return False
        if self.live_again() and writer.alive():
            writer.stop()
        elif not writer.alive() and not self.live_again():
            raise Problem(f"live traffic of {self.load.patience:.0f} s was over before the backlog was")
        self._tell()
        return not writer.alive() and self.missing(FRESH) == 0

    def _tell(self) -> None:
        if time.monotonic() - self._reported > TELL:
            self._reported, since = time.monotonic(), time.time() * 1e6 - TELL * 1e6
            now = spread(at - moment for moment, at in self.clicks[FRESH] if at > since)
            left, seconds = self.missing(OUTAGE), time.time() - self.restarted / 1e6
            print(f"{seconds:5.0f} s: {left:,} clicks of the outage left; fresh: {said(now)}", flush=True)

    def _until(self, what: str, done: Callable[[], bool]) -> None:
        end = time.monotonic() + self.load.patience
        while not done():
            if time.monotonic() > end or self._died(what):
                raise Problem(
                    f"{what}: not done, {self.missing(what)} clicks are missing; see {self.servers.home.logs}"
                )
            time.sleep(POLL)
            self._readable.update()
            self._sort(sum(map(len, self.clicks.values())))

    def _died(self, phase: str) -> bool:
        return (phase == USUAL or self.restarted > 0) and not self.client.alive()

    def _sort(self, known: int) -> None:
        """Take up clicks beyond those that are known."""
        by_process = {str(1000 + seed): self.clicks[name] for name, seed in SEEDS.items()}
        for event_id, at in islice(self._readable.moments.items(), known, None):
            _, process, micros = event_id.split(":")
            by_process[process].append((int(micros), at))

    def missing(self, name: str) -> int | None:
        """Joinable clicks that are not readable; None while it is not known how many there are."""
        about = truth(self.logs / name)
        return about["joinable"] - len(self.clicks[name]) if about else None

    def usual(self) -> Spread:
        """Latency before the outage, without the first half of that traffic: a cold server is not usual."""
        middle = statistics.median(written for written, _ in self.clicks[USUAL])
        return _spread(pair for pair in self.clicks[USUAL] if pair[0] >= middle)

    def drained(self) -> int | None:
        """When the last click of the outage could be read."""
        return max(at for _, at in self.clicks[OUTAGE]) if self.missing(OUTAGE) == 0 else None

    def live_again(self) -> int | None:
        """When the first of some windows of fresh clicks began that were all as fast as usual, and nothing was left."""
        since, fast = self.drained(), self.usual().p90
        found = self.windows(since) if since else []
        for at in range(len(found) - STEADY + 1):
            if all(part.p50 <= fast for _, part in found[at : at + STEADY]):
                return found[at][0]
        return None

    def windows(self, since: int) -> list[tuple[int, Spread]]:
        """Fresh clicks by when they were written: beginning of each window, its latency; not of the last one."""
        parts: dict[int, Pairs] = {}
        for pair in self.clicks[FRESH]:
            parts.setdefault((pair[0] - since) // WINDOW, []).append(pair)
        return [(since + at * WINDOW, _spread(parts[at])) for at in sorted(parts)[:-1] if at >= 0]

    def result(self) -> dict[str, Any]:
        """All figures; seconds from the restart. Errors: Problem unless every id is joined exactly once."""
        seen = examined([self.logs / name for name in PHASES], self.lake.folder / "joined", self.folder / "truth")
        about = {name: truth(self.logs / name) or {} for name in PHASES}
        landed = sum(self.lake.rows(name) for name in ("primary", "foreign"))
        if not seen.exactly_once or landed != sum(map(lines, about.values())):
            raise Problem(f"not exactly once, so there are no figures: {seen}, {landed:,} lines landed of {about}")
        drained, again = self.drained() or 0, self.live_again() or 0
        taken = self._landed(drained) - lines(about[USUAL])
        return {
            "load": asdict(self.load), "outage_lines": lines(about[OUTAGE]), "seen": asdict(seen),
            "drained_seconds": self._after(drained), "live_again_seconds": self._after(again),
            "lines_until_drained": taken, "lines_a_second": round(taken / self._after(drained)),
            "outage_readable_after": asdict(_spread((self.restarted, at) for _, at in self.clicks[OUTAGE])),
            "usual": asdict(self.usual()),
            "meanwhile": asdict(_spread(pair for pair in self.clicks[FRESH] if pair[0] < again)),
            "afterwards": asdict(_spread(pair for pair in self.clicks[FRESH] if pair[0] >= again)),
            "memory_mb": self.memory.peaks, "backlog": self._backlog(),
            "fresh": [(self._after(at), part.p50, part.p90) for at, part in self.windows(self.restarted)],
        }  # fmt: skip

    def _after(self, moment: int) -> float:
        return round((moment - self.restarted) / 1e6, 1)

    def _landed(self, until: int) -> int:
        """Lines in `primary` and `foreign` by a moment: what the statistics of each commit say that it adds."""
        total = 0
        for name in ("primary", "foreign"):
            for commit in (self.lake.folder / name / "_delta_log").glob("*[0-9].json"):
                if commit.stat().st_mtime_ns // 1000 <= until:
                    adds = (json.loads(text).get("add") for text in commit.read_text(encoding="utf-8").splitlines())
                    total += sum(json.loads(add["stats"])["numRecords"] for add in adds if add and add["dataChange"])
        return total

    def _backlog(self) -> list[tuple[float, int]]:
        """Clicks of the outage that could not be read yet, after each commit that made some readable."""
        left = len(self.clicks[OUTAGE])
        found = [(0.0, left)]
        for at, count in sorted(Counter(at for _, at in self.clicks[OUTAGE]).items()):
            left -= count
            found.append((self._after(at), left))
        return found


def _spread(pairs: Iterable[tuple[int, int]]) -> Spread:
    found = spread(at - written for written, at in pairs)
    if not found:
        raise Problem("no clicks were written in a part of the run: make it longer, or the rate higher")
    return found


def said(part: Spread | None) -> str:
    """As text, seconds."""
    return f"p50 {part.p50:.2f} s, p90 {part.p90:.2f} s of {part.count:,} clicks" if part else "no clicks yet"
