"""Connections to a cluster: the only code that calls confluent-kafka. Runs on executors too.

The package is imported when a connection is made, so that what travels to executors names nothing of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from clickjoin.model.errors import ConfigError, SourceError

if TYPE_CHECKING:
    from clickjoin.kernel.chunk import Link

ANSWER = 20.0  # seconds that brokers have for an answer
# Positions are the journal's, the end is what is committed, and an offset that is gone is never passed over.
_OWN = {
    "enable.auto.commit": "false", "enable.auto.offset.store": "false", "auto.offset.reset": "error",
    "isolation.level": "read_committed", "enable.partition.eof": "true",
}  # fmt: skip
# Where enough messages lie ready, librdkafka would fetch none for a second, and a task be at rest for most of that.
_DEFAULTS = {
    "fetch.wait.max.ms": "50", "fetch.queue.backoff.ms": "1", "queued.min.messages": "20000", "client.id": "clickjoin",
}  # fmt: skip
_LITTLE = {"fetch.message.max.bytes": "4096", "queued.min.messages": "1", "fetch.wait.max.ms": "10"}
_GONE = ("UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION")
_REFUSED = (
    "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "_AUTHENTICATION",
    "SASL_AUTHENTICATION_FAILED",
)  # fmt: skip


class Ends(NamedTuple):
    """Offsets of a partition: its first that is there, and the end of what is committed (the last stable offset)."""

    low: int
    high: int


class Topic(NamedTuple):
    """A topic as it is now. `id`: another topic of the same name has another."""

    cluster: str
    id: str
    partitions: tuple[int, ...]


class NoTopic(SourceError):
    """There is no such topic."""


class KafkaAway(SourceError):
    """No broker answers, or it refuses to."""


def settings(link: Link, environment: Mapping[str, str]) -> dict[str, str]:
    """What librdkafka is set to. Errors: SourceError for a secret that the environment does not hold."""
    found = {"bootstrap.servers": link.servers, **_DEFAULTS, **dict(link.options)}
    for option, variable in link.secrets:
        if variable not in environment:
            raise SourceError(
                f"{variable} is not set here, and holds {option} of {link.servers}",
                remedy="Set it in the environment of every process that reads from Kafka, those of Spark's workers too",
            )
        found[option] = environment[variable]
    return found


class Connection:
    """Clients of one cluster, made when they are first used. Not for use from several threads at once."""

    def __init__(self, link: Link, answer: float = ANSWER) -> None:
        self._link, self._answer = link, answer
        self._admin: Any = None
        self._consumer: Any = None
        self._peeker: Any = None
        self._uncommitted = ""
        self.trouble = ""  # the last thing that librdkafka reported

    @property
    def admin(self) -> Any:
        """The client for questions."""
        from confluent_kafka.admin import AdminClient

        if self._admin is None:
            self._admin = _made(AdminClient, self._settings())
        return self._admin

    @property
    def consumer(self) -> Any:
        """The client that reads."""
        from confluent_kafka import Consumer

        if self._consumer is None:
            self._consumer = _made(
                Consumer, {**self._settings(), "group.id": self._link.group, "on_commit": self._answered, **_OWN}
            )
        return self._consumer

    @property
    def peeker(self) -> Any:
        """The client that reads single messages, and little behind them."""
        from confluent_kafka import Consumer

        if self._peeker is None:
            self._peeker = _made(Consumer, {**self._settings(), "group.id": self._link.group, **_OWN, **_LITTLE})
        return self._peeker

    def _settings(self) -> dict[str, Any]:
        return {**settings(self._link, os.environ), "error_cb": self._note, "logger": _quiet()}

    def _note(self, error: Any) -> None:
        self.trouble = error.str()

    def close(self) -> None:
        """Leave the cluster."""
        for consumer in (self._consumer, self._peeker):
            if consumer is not None:
                consumer.close()
        self._admin = self._consumer = self._peeker = None

    def topic(self, name: str) -> Topic:
        """A topic as it is now. Errors: NoTopic, KafkaAway."""
        with self.asking(name):
            asked = self._described(name)
            cluster = self.admin.list_topics(name, timeout=self._answer).cluster_id
            found = asked.result()
        return Topic(str(cluster), _id_of(found), tuple(sorted(part.id for part in found.partitions)))

    def topic_id(self, name: str) -> str:
        """The id of a topic as it is now, by one request. Errors: NoTopic, KafkaAway."""
        with self.asking(name):
            return _id_of(self._described(name).result())

    def _described(self, name: str) -> Any:
        from confluent_kafka import TopicCollection

        return self.admin.describe_topics(TopicCollection([name]), request_timeout=self._answer)[name]

    def ends(self, name: str, partitions: Iterable[int]) -> dict[int, Ends]:
        """Where partitions begin and end. Errors: NoTopic, KafkaAway."""
        from confluent_kafka.admin import OffsetSpec

        numbers = tuple(partitions)
        low = self._listed(name, dict.fromkeys(numbers, OffsetSpec.earliest()))
        high = self._listed(name, dict.fromkeys(numbers, OffsetSpec.latest()))
        return {number: Ends(low[number], high[number]) for number in numbers}

    def at_time(self, name: str, partitions: Iterable[int], millis: int) -> dict[int, int]:
        """The first offset of each partition of a time (milliseconds) or later; -1 where there is none."""
        from confluent_kafka.admin import OffsetSpec

        return self._listed(name, {number: OffsetSpec.for_timestamp(millis) for number in partitions})

    def _listed(self, name: str, wanted: Mapping[int, Any]) -> dict[int, int]:
        from confluent_kafka import IsolationLevel, TopicPartition

        with self.asking(name):
            asked = self.admin.list_offsets(
                {TopicPartition(name, number): spec for number, spec in wanted.items()},
                isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=self._answer,
            )  # fmt: skip
            return {part.partition: int(answer.result().offset) for part, answer in asked.items()}

    def assign(self, places: Sequence[tuple[str, int, int]]) -> None:
        """Read from these offsets on: topic, partition, offset."""
        from confluent_kafka import TopicPartition

        self.consumer.assign([TopicPartition(*place) for place in places])

    def peek(self, name: str, wanted: Mapping[int, tuple[int, int]]) -> dict[int, list[Any]]:
        """The messages of offsets [start, end) of some partitions that are there. Errors: NoTopic, KafkaAway."""
        from confluent_kafka import TopicPartition

        found: dict[int, list[Any]] = {}
        left, until = dict(wanted), time.monotonic() + self._answer
        self.peeker.assign([TopicPartition(name, number, start) for number, (start, _) in wanted.items()])
        try:
            while left and time.monotonic() < until:
                event = self.peeker.poll(0.2)
                if event is None or event.partition() not in left:
                    continue
                number, error = event.partition(), event.error()
                if error is not None and is_final(error):
                    raise self.fault(name, error)
                if error is None and event.offset() < left[number][1]:
                    found.setdefault(number, []).append(event)
                if error is not None or event.offset() >= left[number][1] - 1:
                    del left[number]
        finally:
            self.peeker.unassign()
        if left:
            raise KafkaAway(f"{name} at {self._link.servers}: no answer: {self.trouble or 'no message came'}")
        return found

    def leave(self, topic: str, partition: int) -> None:
        """Fetch no more of a partition."""
        from confluent_kafka import TopicPartition

        self.consumer.incremental_unassign([TopicPartition(topic, partition)])

    @property
    def group(self) -> str:
        """The group that offsets are committed to."""
        return self._link.group

    def commit(self, places: Sequence[tuple[str, int, int]]) -> None:
        """Let tools for consumer groups see how far topics have been read; nobody waits for it."""
        from confluent_kafka import TopicPartition

        self.consumer.commit(offsets=[TopicPartition(*place) for place in places], asynchronous=True)

    def uncommitted(self) -> str:
        """Why the last commit that was answered was refused; empty where it was not."""
        self.consumer.poll(0)
        return self._uncommitted

    def _answered(self, error: Any, places: Sequence[Any]) -> None:
        first = error or next((place.error for place in places if place.error), None)
        self._uncommitted = first.str() if first else ""

    @contextmanager
    def asking(self, what: str) -> Iterator[None]:
        """Errors of a question: NoTopic, KafkaAway."""
        from confluent_kafka import KafkaException

        try:
            yield
        except KafkaException as error:
            if self._admin is not None:
                self._admin.poll(0)  # what it has to report is reported here
            raise self.fault(what, error.args[0]) from None

    def fault(self, what: str, error: Any) -> SourceError:
        """What an error of a broker, or of librdkafka, means."""
        place = f"{what} at {self._link.servers}"
        if error.name() in _GONE:
            return NoTopic(f"{place}: there is no such topic", remedy="Create it, or fix source.topic")
        if error.name() in _REFUSED:
            return KafkaAway(f"{place}: {error.str()}", remedy="Let this user read and describe it (docs/kafka.md)")
        more = f" ({self.trouble})" if self.trouble and self.trouble != error.str() else ""
        return KafkaAway(
            f"{place}: no answer: {error.str()}{more}",
            remedy="Look whether its brokers run and can be reached from here",
        )


def _id_of(described: Any) -> str:
    """As Kafka's own tools print it; librdkafka has `+` and `/` in it."""
    return str(described.topic_id).replace("+", "-").replace("/", "_")


def is_end(error: Any) -> bool:
    """Whether a partition was read to its end for now."""
    return bool(error.name() == "_PARTITION_EOF")


def is_out_of_range(error: Any) -> bool:
    """Whether an offset that was asked for is not there."""
    return error.name() in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE")


def is_final(error: Any) -> bool:
    """Whether asking again would not help."""
    return error.name() in (*_GONE, *_REFUSED) or bool(error.fatal())


def require_package() -> None:
    """Check that this process has confluent-kafka. Errors: ConfigError."""
    if find_spec("confluent_kafka") is None:
        raise ConfigError(
            "a source of kind kafka needs confluent-kafka, which is not installed here",
            remedy="Install clickjoin[kafka], or confluent-kafka, here and on Spark's executors",
        )


def _made(kind: Callable[[dict[str, Any]], Any], options: dict[str, Any]) -> Any:
    from confluent_kafka import KafkaException

    try:
        return kind(options)
    except KafkaException as error:
        raise ConfigError(
            f"source.options: {error.args[0].str()}", remedy="See librdkafka's CONFIGURATION.md"
        ) from None


def _quiet() -> Any:
    """librdkafka writes to stderr by itself; what it says there, errors say too."""
    import logging

    logger = logging.getLogger("clickjoin.kafka")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger
