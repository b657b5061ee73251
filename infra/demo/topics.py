"""Logs as topics of a Kafka broker: each line is a message, and the lines of a file are in one partition, in order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Producer

from bootstrap import Problem
from stack.kafka_broker import make_topics, serving

from .feeder import Feeder
from .script import STREAMS

PARTITIONS = 4
_SECONDS = 60.0  # that the broker may take to acknowledge what is left


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """A broker of the demo's own, with a topic for each stream: where clients find it. Errors: Problem."""
    with serving(folder / "kafka") as server:
        make_topics(server.servers, STREAMS, PARTITIONS)
        yield server.servers


def source(servers: str, stream: str) -> dict[str, str]:
    """A stream's source, as a pipeline's file has it."""
    return {"kind": "kafka", "servers": servers, "topic": stream}


class TopicFeeder(Feeder):
    """A feeder whose files are never seen. Errors: Problem where a message was not acknowledged."""

    def __init__(self, *arguments: Any, servers: str, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5})
        self._failed = ""

    def _file(self, path: Path) -> Any:
        return _Key(self, path.parent.name, path.name)

    def _rotate(self, path: Path) -> None:
        """Nothing: topics are not renamed."""
        self._rotated = True

    def _tick(self) -> None:
        self._producer.poll(0)
        if self._failed:
            raise Problem(f"the broker took no more messages: {self._failed}")

    def _close(self) -> None:
        if left := self._producer.flush(_SECONDS):
            raise Problem(f"the broker has not acknowledged {left} messages in {_SECONDS:g} s")
        self._tick()

    def send(self, topic: str, key: str, value: bytes) -> None:
        """Hand a message to the producer."""
        self._producer.produce(topic, value, key, on_delivery=self._note)

    def _note(self, error: KafkaError | None, _: object) -> None:
        self._failed = str(error) if error else self._failed


class _Key:
    """A file's lines as messages with its name as key."""

    def __init__(self, feeder: TopicFeeder, topic: str, key: str) -> None:
        self._feeder, self._topic, self._key = feeder, topic, key

    def write(self, line: bytes) -> None:
        self._feeder.send(self._topic, self._key, line.removesuffix(b"\n"))
