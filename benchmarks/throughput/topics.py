"""The lines of a Work as topics of a broker: each part's in one partition, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Producer

from benchmarks.throughput.work import PARTS, STREAMS, Work
from stack.kafka_broker import make_topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def source(servers: str, work: Work, stream: str) -> dict[str, str]:
    """A stream's source, as a pipeline's file has it."""
    return {"kind": "kafka", "servers": servers, "topic": topic_of(work, stream)}


def stream(spark: SparkSession, servers: str, work: Work, name: str, parts: int) -> DataFrame:
    """A stream's lines as Structured Streaming's own connector reads them, in batches of as many as some parts hold."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    reader = reader.option("subscribe", topic_of(work, name)).option("startingOffsets", "earliest")
    batch = work.truth[name]["lines"] * parts // PARTS
    return reader.option("maxOffsetsPerTrigger", batch).load().selectExpr("CAST(value AS STRING) AS value")


def topic_of(work: Work, stream: str) -> str:
    """What the topic of a stream is called."""
    return f"{work.folder.name}-{stream}"


def fill(servers: str, work: Work) -> None:
    """Send all lines; parts follow one another in event time, so each is dealt out over all partitions."""
    make_topics(servers, (topic_of(work, stream) for stream in STREAMS), PARTS)
    settings = {"bootstrap.servers": servers, "linger.ms": 50, "queue.buffering.max.messages": 3_000_000}
    producer = Producer({**settings, "acks": "all", "compression.type": "none"})
    for stream in STREAMS:
        for part in range(PARTS):
            lines = (work.folder / stream / f"{part}.jsonl").read_bytes().splitlines()
            for number, line in enumerate(lines):
                producer.produce(topic_of(work, stream), line, partition=number % PARTS)
            left = producer.flush(300)
            if left:
                raise SystemExit(f"the broker has not acknowledged {left} messages")
