"""Objects with names that URLs, shells and globs read otherwise: each record once, and found again by its path."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable

import pytest

from tests.s3.test_join import Cloud, lines
from tests.s3.test_join import make as make
from tests.s3.test_join import spark as spark
from tests.sampled import in_full
from tests.spark.bench import click, query

NAMES = (
    "a b.jsonl", "c+d.jsonl", "e%20f.jsonl", "e f.jsonl", "g=h&i.jsonl", "ü-日本.jsonl", "it's.jsonl", "#1?x=y.jsonl",
    "semi;colon,comma.jsonl", "@at~tilde!.jsonl", "(round) {curly}.jsonl", "%.jsonl", "a%2Fb.jsonl", "$HOME.jsonl",
    'q"q.jsonl',
)  # fmt: skip


@pytest.mark.parametrize("driver_bytes", [pytest.param("16MB", marks=in_full), "0B"])
def test_names_of_objects(make: Callable[..., Cloud], driver_bytes: str) -> None:
    cloud = make(batch={"driver_bytes": driver_bytes})
    wanted = {}
    for at, name in enumerate(NAMES):
        asked = query(f"q{at}", at)
        cloud.put("primary", name, lines(asked))
        record = click(f"c{at}", 30 + at, asked)
        cloud.put("foreign", name, lines(record))
        wanted[record["event_id"]] = name
    cloud.put("foreign", "empty.jsonl", b"")
    parts = [click(f"z{at}", 60 + at, query("q0", 0)) for at in range(3)]
    cloud.put("foreign", "members.jsonl.gz", b"".join(gzip.compress(lines(one)) for one in parts))
    cloud.put("foreign", "no end.jsonl", lines(click("last", 70, query("q1", 1))).rstrip(b"\n"))
    while cloud.engine.join_once():
        pass
    found = Counter(row[0] for row in cloud.rows("joined", "event_id"))
    assert set(found.values()) == {1}
    assert wanted.keys() | {one["event_id"] for one in parts} <= found.keys()
    assert len(found) == len(wanted) + 4
    place = {row[0]: row[1] for row in cloud.rows("foreign", "event_id", "path")}
    for event, name in wanted.items():
        assert place[event].endswith(f"/{name}")
    assert cloud.accounts()["agree"]
