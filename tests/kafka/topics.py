"""Topics of a test: made, written to, looked at. It shares no code with the product."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import contextmanager
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec


class Topics:
    """Topics of one broker, by short names."""

    def __init__(self, servers: str, prefix: str) -> None:
        self.servers, self._prefix = servers, prefix
        self.admin = AdminClient({"bootstrap.servers": servers, "logger": _silent()})
        self._producer: Any = None

    def name(self, short: str) -> str:
        return f"{self._prefix}.{short}"

    def source(self, short: str, **more: Any) -> dict[str, Any]:
        """What a pipeline's file says of a topic."""
        return {"kind": "kafka", "servers": self.servers, "topic": self.name(short)} | more

    def create(self, short: str, partitions: int = 1, **settings: str) -> None:
        config = {name.replace("_", "."): value for name, value in settings.items()}
        topic = NewTopic(self.name(short), partitions, 1, config=config)
        for _ in range(50):  # a topic that was just deleted may still be there
            try:
                self.admin.create_topics([topic])[topic.topic].result()
                break
            except KafkaException as error:
                if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                    raise
                time.sleep(0.1)
        while len(self._described(short)) < partitions:
            time.sleep(0.02)

    def _described(self, short: str) -> list[Any]:
        name = self.name(short)
        try:
            found = self.admin.describe_topics(TopicCollection([name]))[name].result()
        except KafkaException:
            return []
        return [part for part in found.partitions if part.leader is not None]

    def delete(self, short: str) -> None:
        self.admin.delete_topics([self.name(short)])[self.name(short)].result()
        while self._described(short):
            time.sleep(0.02)
        self._producer = None  # it knows the partitions of the old one

    def widen(self, short: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(self.name(short), partitions)])[self.name(short)].result()
        while len(self._described(short)) < partitions:
            time.sleep(0.02)
        self._producer = None  # it knows no more partitions than it knew

    def forget(self, short: str, before: int, partition: int = 0) -> None:
        """Delete the messages before an offset, as retention does."""
        place = TopicPartition(self.name(short), partition, before)
        self.admin.delete_records([place])[place].result()

    def send(self, short: str, records: Iterable[Any], partition: int = 0, **more: Any) -> None:
        """Append records; bytes and None as they are."""
        if self._producer is None:
            self._producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5, "logger": _silent()})
        self._send(self._producer, short, records, partition, **more)
        assert self._producer.flush(30) == 0

    def _send(self, producer: Any, short: str, records: Iterable[Any], partition: int, **more: Any) -> None:
        for record in records:
            value = record if record is None or isinstance(record, bytes) else json.dumps(record).encode()
            while True:
                try:
                    producer.produce(self.name(short), value, partition=partition, **more)
                    break
                except BufferError:
                    producer.poll(0.1)

    @contextmanager
    def transaction(self, short: str, records: Iterable[Any], *, commit: bool, partition: int = 0) -> Any:
        """Inside, the records are written and not committed; afterwards they are, or are aborted."""
        producer = Producer({"bootstrap.servers": self.servers, "transactional.id": f"{self._prefix}{time.time_ns()}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        self._send(producer, short, records, partition)
        producer.flush(30)
        yield
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
        # Brokers write the mark of a transaction a moment after they have answered.
        while self._end(short, partition, committed=True) < self._end(short, partition, committed=False):
            time.sleep(0.02)

    def _end(self, short: str, partition: int, *, committed: bool) -> int:
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        place = TopicPartition(self.name(short), partition)
        asked = self.admin.list_offsets({place: OffsetSpec.latest()}, isolation_level=level)
        return asked[place].result().offset

    def committed(self, group: str, short: str) -> dict[int, int]:
        """What a group has committed: partition to offset."""
        asked = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        found = asked[group].result().topic_partitions
        return {part.partition: part.offset for part in found if part.topic == self.name(short)}


def _silent() -> Any:
    import logging

    logger = logging.getLogger("tests.kafka")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger
