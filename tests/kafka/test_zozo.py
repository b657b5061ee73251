"""The shop's real clicks from topics, while the broker is killed and comes back: 207 of 207."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clickjoin.model.errors import SourceError
from stack.kafka_broker import Broker
from tests.kafka.topics import Topics
from tests.sampled import in_full
from tests.spark.hand import found, verify

LOGS = Path(__file__).parents[2] / "infra/data/zozo"
KILLS = int(os.environ.get("CLICKJOIN_KILLS", "5"))


def lines(stream: str) -> Iterator[list[bytes]]:
    """The lines of each of a stream's logs."""
    for path in sorted((LOGS / stream).iterdir()):
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        yield text.splitlines()


def drained(engine: Any, broker: Broker) -> int:
    """Runs all batches, the first KILLS with the broker killed at the beginning or within; how many there were."""
    batches, kills = 0, 0
    while True:
        kills += 1
        back = threading.Timer(0.1 * (kills % 5), lambda: (broker.kill(), broker.start()))
        if kills <= KILLS:
            back.start()
        try:
            settled = engine.join_once()
        except SourceError:
            continue
        finally:
            if kills <= KILLS:
                back.join()
        if settled is None and kills > KILLS:
            return batches
        batches += settled is not None


@in_full
@pytest.mark.parametrize("local", ["4MB", "0B"])
def test_207_of_207(joined: Callable[..., Any], topics: Topics, broker: Broker, local: str) -> None:
    """Read by this process, or by Spark's workers."""
    most = 40_000 // (KILLS + 1)
    bench = joined(
        4, registry={"retention": "36500d", "bucket": "1d"}, batch={"max_events": most, "driver_bytes": local}
    )
    wanted: dict[str, str] = {}
    for partition, some in enumerate(lines("clicks")):
        wanted |= {click["event_id"]: click["query_id"] for click in map(json.loads, some)}
        topics.send("foreign", some, partition)
    for partition, some in enumerate(lines("impressions")):
        topics.send("primary", some, partition)
    assert len(wanted) == 207
    engine = bench.replica("main")
    batches = drained(engine, broker)
    assert batches >= 3
    bench.clock.now += 10  # clicks that were read before their impressions have waited for them
    while engine.retry_once():
        pass
    pairs = bench.rows("joined", "event_id", "primary_id")
    assert len(pairs) == 207
    assert dict(pairs) == wanted
    assert bench.accounts()["agree"]
    assert found(verify(bench)) == {}
