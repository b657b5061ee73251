"""Sends the lines of growing logs to topics of a broker, as a log shipper does, in a process of its own."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer

from stack.kafka_broker import make_topics, serving

STREAMS = ("queries", "clicks")
_POLL = 0.01  # seconds between two looks at the files


@contextmanager
def shipping(logs: Path, folder: Path, partitions: int = 4) -> Iterator[str]:
    """A broker with a topic a stream, which gets what is appended to LOGS/*/STREAM/*.jsonl: where clients find it."""
    with serving(folder) as broker:
        make_topics(broker.servers, STREAMS, partitions)
        work = (logs, broker.servers)
        shipper = multiprocessing.get_context("spawn").Process(target=ship, args=work, daemon=True)
        shipper.start()
        try:
            yield broker.servers
        finally:
            shipper.kill()


def ship(logs: Path, servers: str) -> None:
    """Send every whole line, once, until the process is killed."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "enable.idempotence": True})
    offsets: dict[Path, int] = {}
    while True:
        for path in (path for stream in STREAMS for path in logs.glob(f"*/{stream}/*.jsonl")):
            with path.open("rb") as log:
                log.seek(offsets.get(path, 0))
                data = log.read(1 << 20)
            whole = data.rfind(b"\n") + 1
            offsets[path] = offsets.get(path, 0) + whole
            for line in data[:whole].splitlines():
                _send(producer, path.parent.name, str(path), line)
        producer.poll(_POLL)
        time.sleep(_POLL)


def _send(producer: Producer, topic: str, key: str, line: bytes) -> None:
    while True:
        try:
            producer.produce(topic, line, key)
            return
        except BufferError:  # the queue is full
            producer.poll(1)
