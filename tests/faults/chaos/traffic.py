"""Live logs for a chaos run: clicks and queries as they happen, some late, some twice, some broken."""

from __future__ import annotations

import json
import random
import threading
import time
from pathlib import Path

from tests.faults.chaos.logs import STREAMS, GrowingFiles, Logs

CONFIG = """
pipeline: p
engine: {engine}
lake: {lake}
primary:
  source: {queries}
  event_id: event_id
  event_time: embedded
foreign:
  source: {clicks}
  event_id: event_id
  event_time: embedded
  primary_id: query_id
  primary_time: embedded
registry: {{retention: {retention}, bucket: 1m, shards: 4}}
retry: {{first_delay: 1s, backoff: 1.5, max_delay: 5s, max_age: 1h, max_attempts: {attempts}}}
batch: {{max_events: 400, max_bytes: 1MB, lease: 10s}}
limits: {{max_skew: 5s}}
retention: {{pending: 2m, files: 1h}}
verify: {{window: 2m}}
"""


class Traffic:
    """Writes logs until it is stopped; `clicks` good ones so far. `age`: seconds that events are older than now.

    `config`, `west`: the pipeline's file, with the engine of most, and with that of replica `west`.
    """

    def __init__(
        self,
        folder: Path,
        seed: int,
        retention: str,
        attempts: int = 1000,
        age: float = 0,
        lake: str = "",
        logs: Logs | None = None,
        engines: tuple[str, str] = ("arrow", "arrow"),
    ) -> None:
        self.logs, self._rng = logs or GrowingFiles(folder), random.Random(seed)
        self.clicks = self._n = 0
        self._age = age
        self._late: list[tuple[float, str]] = []
        self._recent: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.config = folder / "p.yaml"
        self.west = folder / "west/p.yaml"  # where Airflow finds no second pipeline
        self.west.parent.mkdir(exist_ok=True)
        where = {stream: self.logs.source(stream) for stream in STREAMS} | {"lake": lake or folder / "lake"}
        for file, engine in zip((self.config, self.west), engines, strict=True):
            file.write_text(CONFIG.format(**where, engine=engine, retention=retention, attempts=attempts))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Write every query that a click still waits for, then no more."""
        self._over.set()
        self._thread.join()
        self.logs.write("queries", [line for _, line in self._late])

    def _run(self) -> None:
        while not self._over.wait(0.4):
            self._tick(time.time())

    def _tick(self, now: float) -> None:
        queries, clicks, at = [], [], int((now - self._age) * 1e6)
        for _ in range(3):
            self._n += 1
            query = f"10.0.0.1:7:{at + self._n}"
            line = json.dumps({"event_id": query, "text": "q"})
            if self._rng.random() < 0.2:
                self._late.append((now + self._rng.uniform(2, 15), line))
            else:
                queries.append(line)
            for _ in range(self._rng.randrange(3)):
                self._n += 1
                clicks.append(json.dumps({"event_id": f"10.0.0.2:9:{at + self._n}", "query_id": query}))
        self.clicks += len(clicks)
        if self._recent and self._rng.random() < 0.5:
            clicks.append(self._rng.choice(self._recent))
        if self._rng.random() < 0.1:
            clicks.append("{broken")
        self._recent = [*self._recent, *clicks][-500:]
        queries += [line for due, line in self._late if due <= now]
        self._late = [(due, line) for due, line in self._late if due > now]
        self.logs.write("queries", queries)
        self.logs.write("clicks", clicks)
