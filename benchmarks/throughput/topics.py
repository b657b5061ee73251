"""The lines of a Work as topics of a broker: each part's in one partition, in their order."""

from __future__ import annotations

from confluent_kafka import Producer

from benchmarks.throughput.work import PARTS, STREAMS, Work
from stack.kafka_broker import make_topics


def source(servers: str, work: Work, stream: str) -> dict[str, str]:
    """A stream's source, as a pipeline's file has it."""
    return {"kind": "kafka", "servers": servers, "topic": _topic(work, stream)}


def _topic(work: Work, stream: str) -> str:
    return f"{work.folder.name}-{stream}"


def fill(servers: str, work: Work) -> None:
    """Send all lines; parts follow one another in event time, so each is dealt out over all partitions."""
    make_topics(servers, (_topic(work, stream) for stream in STREAMS), PARTS)
    settings = {"bootstrap.servers": servers, "linger.ms": 50, "queue.buffering.max.messages": 3_000_000}
    producer = Producer({**settings, "acks": "all", "compression.type": "none"})
    for stream in STREAMS:
        for part in range(PARTS):
            lines = (work.folder / stream / f"{part}.jsonl").read_bytes().splitlines()
            for number, line in enumerate(lines):
                producer.produce(_topic(work, stream), line, partition=number % PARTS)
            left = producer.flush(300)
            if left:
                raise SystemExit(f"the broker has not acknowledged {left} messages")
