"""A real broker for all tests of the folder, topics of their own for each, and pipelines that read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stack.kafka_broker import Broker, NoBroker
from tests.kafka.certificate import certificate
from tests.kafka.topics import Topics
from tests.spark.conftest import lakes as lakes
from tests.spark.conftest import make as make
from tests.spark.conftest import spark as spark


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that runs; where there can be none, the tests say so and are skipped."""
    try:
        server = Broker(folder := tmp_path_factory.mktemp("kafka"), pem=certificate(folder))
    except NoBroker as error:
        pytest.skip(f"no Kafka broker: {error}")
    server.start()
    yield server
    server.kill()


@pytest.fixture
def topics(broker: Broker, tmp_path: Path) -> Topics:
    """Topics whose names no other test has."""
    return Topics(broker.servers, tmp_path.name)


@pytest.fixture
def joined(topics: Topics, make: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a pipeline that reads two topics; arguments replace fields of its file."""

    def build(partitions: int = 1, **fields: Any) -> Any:
        for stream in ("primary", "foreign"):
            topics.create(stream, partitions)
        source = {stream: topics.source(stream) for stream in ("primary", "foreign")}
        return make(**{stream: {"source": at} for stream, at in source.items()}, **fields)

    return build
