"""Logs for proposals: the same queries and clicks, written in more than one way."""

from __future__ import annotations

import csv
import gzip
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

START = datetime(2026, 11, 20, 8, tzinfo=UTC)
rng = random.Random(7)


class Query(NamedTuple):
    """An id, a time, a number."""

    name: str
    at: datetime
    number: int


class Click(NamedTuple):
    """The same, and the query that it names."""

    name: str
    at: datetime
    number: int
    query: Query


QUERIES = [Query(f"q{rng.getrandbits(40):010x}", START + timedelta(seconds=37 * n), n) for n in range(300)]
CLICKS = [
    Click(f"c{rng.getrandbits(40):010x}", query.at + timedelta(seconds=rng.randrange(1, 900)), n, query)
    for n, query in enumerate(rng.choices(QUERIES, k=400))
]


def lines(path: Path, records: list[dict[str, Any]]) -> None:
    """One JSON object a line; packed where the name says so."""
    text = "".join(json.dumps(record) + "\n" for record in records).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def iso(at: datetime) -> str:
    """ISO 8601 with a Z."""
    return at.isoformat().replace("+00:00", "Z")


def nested(folder: Path) -> None:
    """JSON whose ids lie inside of objects and arrays."""
    lines(
        folder / "queries" / "q.jsonl.gz",
        [{"meta": {"id": q.name, "n": q.number % 5}, "at": iso(q.at)} for q in QUERIES],
    )
    clicks = [
        {"event": {"ids": ["v1", c.name]}, "ctx": {"query": {"id": c.query.name}}, "time": iso(c.at), "n": c.number % 9}
        for c in CLICKS
    ]
    lines(folder / "clicks" / "c.jsonl", clicks)


def odd_dates(folder: Path) -> None:
    """CSV with semicolons and German dates."""
    form = "%d.%m.%Y %H:%M:%S"
    for name, head, rows in (
        ("queries", ["query_id", "when"], [[q.name, q.at.strftime(form)] for q in QUERIES]),
        ("clicks", ["click_id", "query", "when"], [[c.name, c.query.name, c.at.strftime(form)] for c in CLICKS]),
    ):
        with (folder / name / "x.csv").open("w", newline="") as file:
            csv.writer(file, delimiter=";").writerows([head, *rows])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for each stream."""
    for name in ("queries", "clicks"):
        (tmp_path / name).mkdir()
    return tmp_path
