"""Hand-made logs of queries and clicks, and what came of them."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from pathlib import Path

from demo.lake import Lake

_number = itertools.count(int(time.time() * 1e6))


def event_id(host: int) -> str:
    """A new id in Photon's form."""
    return f"10.0.0.{host}:7:{next(_number)}"


class Logs:
    """Logs of one pipeline beside its file, and its tables."""

    def __init__(self, folder: Path, name: str) -> None:
        self.queries, self.clicks = (folder / f"{name}-logs" / part / "one.jsonl" for part in ("queries", "clicks"))
        for file in (self.queries, self.clicks):
            file.parent.mkdir(parents=True)
        self.lake = Lake(folder / "lake" / name)
        self.expected: list[str] = []

    def query(self, query: str | None = None) -> str:
        """Write a query; returns its id."""
        query = query or event_id(1)
        self._write(self.queries, {"event_id": query, "words": "red shoes"})
        return query

    def click(self, query: str) -> None:
        """Write a click on a query, which shall be joined in the end."""
        click = event_id(2)
        self._write(self.clicks, {"event_id": click, "query_id": query})
        self.expected.append(click)

    def joined(self) -> Counter[str]:
        """Ids in the output, and how often each is there."""
        return Counter(row["event_id"] for row in self.lake.read("joined", "event_id"))

    def wait(self, seconds: float) -> None:
        """Wait until each click is joined, and look that none is joined twice."""
        deadline = time.monotonic() + seconds
        while set(self.joined()) != set(self.expected):
            assert time.monotonic() < deadline, f"{sum(self.joined().values())} of {len(self.expected)} joined"
            time.sleep(0.2)
        assert self.joined() == Counter(self.expected)

    def _write(self, file: Path, record: dict[str, str]) -> None:
        with file.open("a") as log:
            log.write(json.dumps(record) + "\n")
