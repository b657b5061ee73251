"""A broker that comes back older, and takes in as much as it lost or more: other messages lie at the same offsets."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stack.kafka_broker import Broker, NoBroker
from tests.kafka.topics import Topics
from tests.sampled import some
from tests.spark.bench import Bench, click, query
from tests.spark.count import agrees
from tests.spark.hand import found, verify

Q = query("q")


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Broker]:
    """A broker of this test alone, since it is put back."""
    try:
        broker = Broker(tmp_path / "kafka")
    except NoBroker as error:
        pytest.skip(f"no Kafka broker: {error}")
    broker.start()
    yield broker
    broker.kill()


def batch(name: str, count: int, at: int) -> list[dict[str, Any]]:
    return [click(f"{name}{n}", at + n, Q) for n in range(count)]


@pytest.mark.parametrize("grown", some([10, 30], 2), ids=lambda grown: f"by {grown}")
def test_what_took_the_place_of_lost_messages_is_read(make: Any, alone: Broker, grown: int) -> None:
    topics = Topics(alone.servers, "t")
    for stream in ("primary", "foreign"):
        topics.create(stream)
    bench: Bench = make(**{stream: {"source": topics.source(stream)} for stream in ("primary", "foreign")})
    topics.send("primary", [Q])
    topics.send("foreign", first := batch("a", 10, 2))
    assert bench.replica("main").join_once()
    alone.kill()
    kept = alone.folder / "kept"
    shutil.copytree(alone.folder / "data", kept)
    alone.start()
    bench.clock.now += 30
    topics.send("foreign", lost := batch("b", 10, 20))
    assert bench.replica("main").join_once()
    alone.kill()
    shutil.rmtree(alone.folder / "data")
    kept.rename(alone.folder / "data")
    alone.start()
    bench.clock.now += 30
    topics = Topics(alone.servers, "t")
    topics.send("foreign", other := batch("c", grown, 40))
    engine = bench.replica("main")
    assert engine.join_once()
    (problem,) = engine.problems()
    assert (problem.kind, problem.offset, "offset 19 is not the one that was read" in problem.detail) == (
        "rewritten", 10, True,
    )  # fmt: skip
    ids = [row[0] for row in bench.rows("joined", "event_id")]
    assert ids == sorted(each["event_id"] for each in [*first, *lost, *other])
    assert agrees(bench)
    bench.clock.now += 60
    assert found(verify(bench)) == {}
