"""A program that commits to a table when it is asked to, driven from a test (see tests/faults/disk/writer.py)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PATH = ":".join(str(ROOT / part) for part in (".", "spark_apps", "infra"))


class Program:
    """A process of its own that commits to a lake by Spark or by delta-rs (`kind`)."""

    def __init__(self, kind: str, root: str, env: Mapping[str, str], log: Path) -> None:
        self._log = log.open("w")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.disk.writer", kind.removesuffix("-2"), root],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, cwd=ROOT, env=env,
        )  # fmt: skip
        self._pool = ThreadPoolExecutor(1)

    def answer(self) -> Any:
        """The next line of its output."""
        assert self._process.stdout
        return json.loads(self._process.stdout.readline())

    def ask(self, **what: Any) -> Future[Any]:
        """Have it do something; what it answers."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return self._pool.submit(self.answer)

    def do(self, **what: Any) -> Any:
        """Have it do something, and wait."""
        return self.ask(**what).result(120)

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._pool.shutdown()
        self._process.communicate()
        self._log.close()
