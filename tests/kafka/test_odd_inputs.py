"""Records that are odd in one way each, from topics, on both engines."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clickjoin.jobs.run import drain
from tests.kafka.topics import Topics
from tests.odd_inputs import ENGINES, KINDS, QUERIES, Kind, check
from tests.sampled import in_full
from tests.spark.bench import Bench
from tests.spark.hand import found, verify

# A message is one record: arrays of records are for files.
OF_TOPICS = [kind for kind in KINDS if kind.messages and "records" not in kind.source]
CASES = [(kind, engine) for kind in OF_TOPICS for engine in ENGINES]


@in_full
@pytest.mark.parametrize(("kind", "engine"), CASES, ids=str)
def test_from_messages(make: Callable[..., Bench], topics: Topics, kind: Kind, engine: str) -> None:
    for stream in ("primary", "foreign"):
        topics.create(stream)
    bench = make(**kind.fields(engine, lambda stream, _: topics.source(stream)))
    topics.send("primary", [] if kind.shared else QUERIES)
    topics.send("foreign", kind.messages)
    check(bench, kind, lambda: drain(bench.spark, bench.pipeline, "main", print), lambda: found(verify(bench)))
