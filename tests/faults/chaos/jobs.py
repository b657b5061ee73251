"""Processes that are started again whenever they end: the command line's jobs of a chaos run."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


@dataclass
class Job:
    """One command, over and over, `pause` seconds apart; `env`: variables of its own.

    Exit codes outside `fine`, and tracebacks, are kept with the log's end.
    """

    name: str
    command: Callable[[], list[str]]
    log: Path
    pause: float = 0.0
    fine: tuple[int, ...] = (0, 3, -9)  # 3: something was lost that may come back
    env: Mapping[str, str] = field(default_factory=dict)
    codes: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        env = {**os.environ, "PYTHONPATH": str(ROOT / "spark_apps"), **self.env}
        while not self._over.is_set():
            start = self.log.stat().st_size if self.log.exists() else 0
            with self.log.open("a") as log:
                line = [sys.executable, "-m", "clickjoin.cli", *self.command()]
                self.process = subprocess.Popen(line, env=env, stdout=log, stderr=subprocess.STDOUT)
                code = self.process.wait()
            self.codes[code] += 1
            said = self.log.read_text()[start:]
            if (code not in self.fine or (code == 1 and "Traceback" in said)) and not self._over.is_set():
                self.wrong.append(f"{self.name}: exit code {code}\n{said[-3000:]}")
            self._over.wait(self.pause)

    def kill(self) -> bool:
        """kill -9; False where it is not running just now."""
        if self.process is None or self.process.poll() is not None:
            return False
        self.process.kill()
        return True

    def stop(self, patience: float = 60) -> None:
        """Ask it to end, and start it no more."""
        self._over.set()
        if self.process and self.process.poll() is None:
            self.process.terminate()
        end = time.monotonic() + patience
        self._thread.join(patience)
        if self._thread.is_alive() and time.monotonic() >= end and self.process:
            self.process.kill()
            self._thread.join()
