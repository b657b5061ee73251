"""The second kind: nothing is killed. Processes are stopped for up to a minute, clocks jump by up to two days.

Beside two replicas run, all at once and over and over: gc, verify --repair, backfill, redrive and reshard.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil

from tests.faults.chaos.jobs import Job
from tests.faults.chaos.run import RESUME_PATIENCE, Chaos, Outcome

DAYS = 2.0
_LIBRARIES = ("/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime", "/usr/lib/faketime",
              "/usr/local/lib/faketime")  # fmt: skip
# Drawn for each pause. `spark` is the server with all that it started.
WEIGHTS = {"west": 6, "east": 6, "gc": 4, "verify": 3, "backfill": 2, "redrive": 2, "reshard": 1, "spark": 2}
_MOST_STOPPED = 3


def faketime() -> str:
    """Path of libfaketime. Errors: FileNotFoundError, which says how to install it."""
    for folder in _LIBRARIES:
        found = Path(folder) / "libfaketime.so.1"
        if found.exists():
            return str(found)
    raise FileNotFoundError(
        f"libfaketime.so.1 is in none of {', '.join(_LIBRARIES)}: install it (apt-get install faketime), "
        "or leave clocks alone with --days 0"
    )


class Clock:
    """The clock of one job: wrong by what a file says, which a running process reads again every second."""

    def __init__(self, file: Path, library: str) -> None:
        self._file, self._library = file, library
        self.set(0)

    def set(self, seconds: float) -> None:
        """Let it be wrong by so many seconds."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{seconds:+.0f}\n")
        fresh.rename(self._file)

    def env(self) -> dict[str, str]:
        """Variables for its job. Files keep the times that the file system gives them, and waiting takes as long."""
        return {
            "LD_PRELOAD": self._library,
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }


_SLEEP, _JUMPED = "sleep(", "OSError: [Errno 22] Invalid argument"


class Pauses(Chaos):
    """Two replicas, and all that maintains them at once, while processes are stopped and clocks jump."""

    attempts = 8
    days = DAYS
    jumps = 0
    longest = 0.0

    def run_for(self, seconds: float) -> Outcome:
        """Go on for so long, let everything come to its end, and ask the oracle."""
        self.traffic.start()
        self._clickjoin("init")
        library = faketime() if self.days else ""
        names = [name for name in WEIGHTS if name != "spark"] if self.days else []
        self.clocks = {name: Clock(self.folder / f"{name}.clock", library) for name in names}
        self._start_all()
        began = time.monotonic()
        stopped: list[tuple[float, list[psutil.Process]]] = []
        while time.monotonic() - began < seconds:
            stopped = self._wake(stopped, time.monotonic())
            if len(stopped) < _MOST_STOPPED:
                stopped += self._stop_one()
            if self.rng.random() < 0.3:
                self._jump()
            time.sleep(self.rng.uniform(0.5, 4))
        self._wake(stopped, float("inf"))
        self._finish()
        return self._outcome(began, redriven=True)

    def _start_all(self) -> None:
        config = ["--config", str(self.traffic.config)]
        remote = [*config, "--spark-connect", str(self.stack.home.connect_url)]
        today = datetime.now(UTC).date().isoformat()
        # 1: a date is not closed, since its logs are still written; 2: what is asked for is refused.
        lines: dict[str, tuple[list[str], float, tuple[int, ...]]] = {
            "west": (["run", "--replica", "west", "--lease", "60", *remote], 0, (0, 3)),
            "east": (["run", "--replica", "east", "--lease", "60", *remote], 0, (0, 3)),
            "gc": (["gc", "--wait", "3", *remote], 5, (0, 2, 3)),
            "verify": (["verify", "--repair", *remote], 10, (0, 3)),
            "backfill": (["backfill", "--from", today, "--replica", "west", *remote], 20, (0, 1, 2, 3)),
            "redrive": (["redrive", "--replica", "east", *remote], 15, (0, 3)),
        }
        for name, (line, pause, fine) in lines.items():
            self._job(name, line, pause, fine)
            if name == "east":  # a server that has just started takes one after the other
                self._await_batch(time.time(), patience=2 * RESUME_PATIENCE)
        self._job("reshard", ["reshard", *config], 40, (0, 2, 3))

    def _job(self, name: str, line: list[str], pause: float, fine: tuple[int, ...]) -> None:
        env = self.clocks[name].env() if name in self.clocks else {}

        def command() -> list[str]:
            return [*line, "--shards", str(next(self._shards))] if name == "reshard" else line

        self.jobs[name] = Job(name, command, self.folder / f"{name}.log", pause, fine, env)

    def _stop_one(self) -> list[tuple[float, list[psutil.Process]]]:
        """Stop somebody who runs; until when, and the processes."""
        name = self.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        processes = self._processes(name)
        held = [process for process in processes if _signal(process, signal.SIGSTOP)]
        if not held:
            return []
        seconds = 60.0 ** self.rng.random()  # as many from 1 to 8 as from 8 to 60
        self.longest = max(self.longest, seconds)
        self.kills[name] += 1
        self.report_line(f"pause {sum(self.kills.values())}: {name} for {seconds:.0f} s")
        return [(time.monotonic() + seconds, held)]

    def _processes(self, name: str) -> list[psutil.Process]:
        with suppress(psutil.Error):
            if name == "spark":
                server = psutil.Process(next(one.pid for one in self.stack.servers if one.name == "spark"))
                return [server, *server.children(recursive=True)]
            process = self.jobs[name].process
            if process is not None and process.poll() is None:
                return [psutil.Process(process.pid)]
        return []

    def _wake(
        self, stopped: list[tuple[float, list[psutil.Process]]], now: float
    ) -> list[tuple[float, list[psutil.Process]]]:
        """Let those go on whose time is over; returns the others."""
        for until, processes in stopped:
            if until <= now:
                for process in processes:
                    _signal(process, signal.SIGCONT)
        return [item for item in stopped if item[0] > now]

    def _jump(self) -> None:
        """Set somebody's clock: right, or wrong by up to two days either way."""
        if not self.clocks:
            return
        name = self.rng.choice(sorted(self.clocks))
        wrong = 0.0 if self.rng.random() < 0.2 else self.rng.uniform(-1, 1) * self.days * 86_400
        self.clocks[name].set(wrong)
        self.jumps += 1
        self.report_line(f"the clock of {name} is wrong by {wrong / 3600:+.1f} h")

    def _finish(self) -> None:
        for clock in self.clocks.values():
            clock.set(0)
        self.traffic.stop()
        for job in self.jobs.values():
            job.stop(180)
            # No clock of a real machine makes a sleep fail: libfaketime does, where one jumps as the sleep begins.
            job.wrong = [text for text in job.wrong if not (_SLEEP in text and text.rstrip().endswith(_JUMPED))]
        for command in ("drain", "redrive", "drain"):
            for name in ("east", "west"):
                more = ["--no-check"] if command == "drain" else []
                self._clickjoin(command, *more, "--replica", name, remote=True)
        self._clickjoin("verify", "--repair", remote=True)


def _signal(process: psutil.Process, number: int) -> bool:
    with suppress(psutil.Error, ProcessLookupError):
        if process.status() != psutil.STATUS_ZOMBIE:
            os.kill(process.pid, number)
            return True
    return False


def text(chaos: Pauses, outcome: Outcome) -> str:
    """All of it, for a person."""
    pauses: Counter[str] = outcome.kills
    drawn = f"{sum(pauses.values())} pauses of 1 to {chaos.longest:.0f} s in {outcome.seconds:.0f} s: {dict(pauses)}"
    moved = f"shards in force: {outcome.timeline}; boundary moved {outcome.boundary_moves} times"
    return "\n".join([
        f"{drawn}; {chaos.jumps} jumps of clocks by up to {chaos.days:.0f} days",
        f"exit codes: {outcome.codes}; {moved}",
        outcome.verdict.text(),
        *outcome.wrong,
    ])  # fmt: skip
