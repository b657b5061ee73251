"""A lake with a person's events among those of others, and how to forget and to look for them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from clickjoin.jobs.upkeep import forget
from clickjoin.model.span import Span
from tests.spark.bench import Bench, click, query
from tests.spark.hand import found, verify

# What only records of the person hold: nothing but a record can bring it into a table.
SECRET = "s3cr3t-of-u17"
OTHERS = "cdgh"
TABLES = ("primary", "foreign", "joined", "filtered", "unjoinable", "expired", "pending", "quarantine", "findings")
MARCH_1 = Span(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))
P, Q, NEVER = query("p", 0, user={"id": 17, "note": SECRET}), query("q", 1, user={"id": 4}), query("never", 9)


def mine(host: str, seconds: float, of: Any, **more: Any) -> dict[str, Any]:
    return click(host, seconds, of, user_id="U17", note=SECRET, **more)


def other(host: str, seconds: float, of: Any) -> dict[str, Any]:
    return click(host, seconds, of, user_id="U1")


@pytest.fixture(scope="session")
def person(make: Any) -> Bench:
    """Of user U17: a joined, b pending, u given up, e expired, and f a click without a name on their query p.

    Of others: c, g and h joined, d waits.
    """
    made: Bench = make(
        retry={"max_attempts": 2, "max_age": "5s", "first_delay": "10s", "backoff": 1},
        backfill={"roots": ["."]},
    )
    made.queries(P, Q)
    made.clicks(
        mine("a", 2, Q), mine("u", 3, NEVER), other("c", 4, Q), click("f", 5, P), other("g", 6, Q), other("h", 7, Q)
    )
    made.clicks(f'{{"user_id": "U17", "note": "{SECRET}", broken', '{"user_id": "U170", broken')
    made.join()
    made.retry(after=11)
    made.clicks(mine("b", 30, NEVER), other("d", 31, NEVER))
    made.join()
    assert made.places() == {"joined": ["a", "c", "f", "g", "h"], "unjoinable": ["u"], "pending": ["b", "d"]}
    return made


@pytest.fixture
def bench(person: Bench, tmp_path: Path) -> Iterator[Bench]:
    """That lake, put back afterwards."""
    pipeline = person.pipeline
    with person.kept(tmp_path / "kept"):
        yield person
        person.pipeline = pipeline
        shutil.rmtree(person.folder / "old", ignore_errors=True)


def run(bench: Bench, *where: str, apply: bool = True, ids: str | None = None, **more: Any) -> dict[str, Any]:
    said: list[str] = []
    wanted = {"where": "\n".join(where or ("foreign.user_id=U17", "primary.user.id=17")), "ids": ids}
    return forget(bench.spark, bench.pipeline, "main", said.append, apply=apply, wait=0, **wanted, **more)


@pytest.fixture(scope="session")
def without(person: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake's folder as it is when the person has been forgotten: once for all tests that begin there."""
    folder = tmp_path_factory.mktemp("without")
    with person.kept(folder / "kept"):
        run(person)
        shutil.copytree(person.disk, folder / "lake")
    return folder / "lake"


@pytest.fixture
def forgotten_before(bench: Bench, without: Path) -> None:
    """The person has been forgotten when the test begins."""
    bench.put_back(without)
    bench.engine = bench.replica("main")


def holding(bench: Bench, text: str = SECRET) -> dict[str, int]:
    """Rows of the newest version of each table that hold a text in any column: by no code of ours."""
    held = {}
    for folder in sorted(bench.disk.iterdir()):
        if (folder / "_delta_log").is_dir():
            rows = DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
            held[folder.name] = sum(text in repr(row) for row in rows)
    return {name: count for name, count in held.items() if count}


def in_files(bench: Bench) -> int:
    """Data files of all versions that hold the person's text."""
    files = [path for path in bench.disk.rglob("*.parquet") if "_delta_log" not in path.parts]
    return sum(SECRET in repr(pq.read_table(path, partitioning=None).to_pylist()) for path in files)


def gone(bench: Bench) -> None:
    """Nothing of the person is in any table; everything of others is where it was; the sums and proofs agree."""
    assert holding(bench) == {}
    bench.engine = bench.replica("main")
    assert bench.places() == {"joined": ["c", "g", "h"], "pending": ["d"]}
    assert {host: outcome for host, (_, outcome) in bench.claims().items()} == {
        "a": "joined", "b": "forgotten", "c": "joined", "f": "joined", "g": "joined", "h": "joined", "u": "unjoinable",
    }  # fmt: skip
    sums = bench.accounts()
    assert (sums["agree"], sums["accepted"], sums["forgotten"]) == (True, 8, 4)
    assert found(verify(bench)) == {}


def claimed(bench: Bench) -> list[str]:
    return [row[0] for row in bench.rows("registry", "event_id")]
