"""Commands of the product as processes, which can be killed as a whole."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PAUSE = (6.0, 25.0)  # seconds from one kill to the next: a process begins in some ten, and works for some


class Commands:
    """Processes of `clickjoin run` by name, each with its options; what they print goes to NAME.log in `folder`."""

    def __init__(self, folder: Path, options: dict[str, list[str]]) -> None:
        self.folder, self.options = folder, options
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def run(self, name: str) -> None:
        """Start the process of this name, which joins for ever."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(self._line("run", name), stdout=log, stderr=log, process_group=0)

    def kill(self, name: str) -> None:
        """End it as kill -9 does, its Spark with it."""
        os.killpg(self.running[name].pid, signal.SIGKILL)
        self.running.pop(name).wait()

    def drain(self, name: str) -> dict[str, Any]:
        """Join all that is left, and count by the product itself. Errors: CalledProcessError."""
        done = subprocess.run(self._line("drain", name, "--json"), stdout=subprocess.PIPE, check=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    @contextmanager
    def all_running(self) -> Iterator[None]:
        """All of them, until the block ends."""
        try:
            for name in self.options:
                self.run(name)
            yield
        finally:
            for name in list(self.running):
                self.kill(name)

    def killed(self, kills: int, rng: random.Random) -> Iterator[tuple[str, Counter[str]]]:
        """Kill one after the other at random and start it again; which it was, and how often each so far."""
        counted: Counter[str] = Counter()
        while counted.total() < kills:
            time.sleep(rng.uniform(*_PAUSE))
            name = rng.choice(list(self.options))
            self.kill(name)
            counted[name] += 1
            yield name, counted
            self.run(name)

    def _line(self, command: str, name: str, *more: str) -> list[str]:
        return [sys.executable, "-m", "clickjoin.cli", command, *self.options[name], *more]
