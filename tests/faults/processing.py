"""Two processes process the output of a pipeline while it grows; they are killed, and stopped for a while, at random.

    make process-kills KILLS=30

Of counts once more with events behind the watermark, which correct what was reported (`late: correct`). Exits 1 unless
what they have reported is what a count of our own says, and what one process reports that is let alone.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.folders import remove
from clickjoin.config.umask import keep_private
from tests.unit.processing_bench import DAY, NOON, SECOND, Event, Output, micros

WINDOW = 10 * SECOND
_EVERY = 0.3  # seconds from one batch of the join to the next, each ten seconds of its events' time
_PAUSE = (1.5, 6.0)  # seconds from one kill to the next: a process begins in two
COUNTS = {"processor": "clickjoin.processors:TumblingCounts", "args": {"window": "10s"}}
CORRECTED = COUNTS | {"late": "correct", "lateness": "10m"}
SPIKES = {
    "processor": "clickjoin.processors:SpikesAndDips",
    "args": {"window": "10s", "season": "1d", "warm": "1m", "min_count": 5, "threshold": 4},
}


class Growing(threading.Thread):
    """Publishes batches until it is asked to end. A share of their events, `late`, is up to a minute behind the
    watermark."""

    def __init__(self, out: Output, rng: random.Random, late: float = 0) -> None:
        super().__init__()
        self.out, self.events = out, list[Event]()
        self.watermark = NOON
        self._rng, self._late, self._ended = rng, late, threading.Event()

    def run(self) -> None:
        """See Thread."""
        while not self._ended.wait(_EVERY):
            self.batch()
        self.out.publish([], self.watermark + DAY)
        self.watermark += DAY

    def batch(self) -> None:
        """Some events of the twenty seconds from the watermark on; now and then many of one key."""
        rng, begin = self._rng, self.watermark
        keys = [f"k{int(rng.paretovariate(1)) % 40}" for _ in range(rng.randint(0, 40))]
        keys += ["k7"] * (60 if rng.random() < 0.05 else 0)
        new: list[Event] = [(f"{self.out.batch}-{at}", key, begin + self._after()) for at, key in enumerate(keys)]
        self.events += new
        self.watermark = begin + WINDOW
        self.out.publish(new, self.watermark)

    def _after(self) -> int:
        if self._late and self._rng.random() < self._late:
            return -self._rng.randint(1, 60 * SECOND)
        return self._rng.randint(0, 20 * SECOND - 1)

    def end(self) -> None:
        """Publish no more; a last batch has the watermark pass all."""
        self._ended.set()
        self.join()


class Workers:
    """Processes that process without end."""

    def __init__(self, out: Output, folder: Path) -> None:
        self._out, self._folder = out, folder
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        """Start one."""
        command = [sys.executable, "-m", "clickjoin.cli", "process", "--config", str(self._out.file), "--no-check"]
        with (self._folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen([*command, "--lease", "10000"], stdout=log, stderr=log)

    def kill(self, name: str) -> None:
        """kill -9."""
        self.running[name].kill()
        self.running.pop(name).wait()

    def pause(self, name: str, seconds: float) -> None:
        """Let it be a zombie for a while."""
        os.kill(self.running[name].pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self.running[name].pid, signal.SIGCONT)

    def tracebacks(self) -> int:
        """How often one ended in an error that nobody expected."""
        return sum(log.read_text().count("Traceback") for log in self._folder.glob("*.log"))


def run(folder: Path, process: dict[str, Any], kills: int, seed: int) -> dict[str, Any]:
    """Kill so many times, and compare; what was found."""
    rng = random.Random(seed)
    out = Output(folder, process)
    growing, workers = Growing(out, rng, 0.1 if "late" in process else 0), Workers(out, folder)
    growing.start()
    done: Counter[str] = Counter()
    try:
        for name in "ab":
            workers.start(name)
        while done["kills"] < kills:
            time.sleep(rng.uniform(*_PAUSE))
            name = rng.choice("ab")
            if rng.random() < 0.3:
                workers.pause(name, rng.uniform(1, 5))
                done["pauses"] += 1
            else:
                workers.kill(name)
                workers.start(name)
                done["kills"] += 1
    finally:
        growing.end()
        for name in list(workers.running):
            workers.kill(name)
    return compared(out, growing, folder) | done | {"tracebacks": workers.tracebacks()}


def compared(out: Output, growing: Growing, folder: Path) -> dict[str, Any]:
    """What the killed ones have reported against one that is let alone, and counts against a count of our own."""
    _cli(out, folder)
    killed, counts, rows = _standing(out), _counts(out), out.rows("signals")
    corrects, late = "late" in out.raw["process"], len(out.rows("late"))
    _cli(out, folder, "--rebuild")
    alone, own = _standing(out), Counter[tuple[str, int]]()
    for _, key, at in growing.events:
        own[str(key), at // WINDOW * WINDOW] += 1
    of_counts = out.raw["process"]["processor"].endswith("TumblingCounts")
    wrong = len(counts - own) + len(own - counts) if of_counts else 0
    more = {"late": late, "taken back": sum(row["retracted"] for row in rows)} if corrects else {}
    return {
        "events": len(growing.events), "signals": len(rows), "differ": len(set(killed) ^ set(alone)),
        "twice": len(rows) - len({row["id"] for row in rows}), "wrong": wrong,
    } | more  # fmt: skip


def _cli(out: Output, folder: Path, *more: str) -> None:
    """Process all there is, and have the sums compared. Errors: CalledProcessError."""
    with (folder / "alone.log").open("ab") as log:
        command = [sys.executable, "-m", "clickjoin.cli", "process", "--config", str(out.file), *more]
        subprocess.run(command, check=True, stdout=log, stderr=log)


def _standing(out: Output) -> list[tuple[Any, ...]]:
    """What was reported and not taken back: as the lake's own readers find it, by key, kind, window and revision."""
    rows, place = out.rows("signals"), ("key", "kind", "window_start", "revision")
    gone = Counter(tuple(row[name] for name in place) for row in rows if row["retracted"])
    names = ("key", "kind", "window_start", "window_end", "count", "expected", "low", "high", "score")
    stands = (row for row in rows if not row["retracted"] and not gone[tuple(row[name] for name in place)])
    return [tuple(row[name] for name in names) for row in stands]


def _counts(out: Output) -> Counter[tuple[str, int]]:
    """Of each key and window what stands; the sum where more rows stand than one."""
    found = Counter[tuple[str, int]]()
    for key, _, start, _, count, *_ in _standing(out):
        found[key, micros(start)] += count
    return found


def _runs(late: str | None) -> list[tuple[str, dict[str, Any]]]:
    runs = [("counts", COUNTS), ("corrected counts", CORRECTED), ("spikes and dips", SPIKES)]
    return [(name, process) for name, process in runs if late in (None, process.get("late", "keep"))]


def main(arguments: list[str]) -> int:
    """Run it for counts, for counts that are corrected, and for spikes; print what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.processing")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--late", choices=["keep", "correct"], help="one of them alone")
    chosen = parser.parse_args(arguments)
    keep_private()
    good = True
    for name, process in _runs(chosen.late):
        folder = Path(tempfile.mkdtemp(prefix="clickjoin-process-"))
        found = run(folder, process, chosen.kills, chosen.seed)
        print(f"{name}: {', '.join(f'{key} {value:,}' for key, value in found.items())}", flush=True)
        fine = not (found["differ"] or found["twice"] or found["wrong"] or found["tracebacks"])
        good &= fine
        remove(folder) if fine else print(f"see {folder}")
    print("each signal once, as if nothing had been killed" if good else "something is wrong: see above")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
