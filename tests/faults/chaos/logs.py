"""Where the logs of a chaos run lie: files that grow, objects of which each is new, or topics of a Kafka broker."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any, Protocol

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from confluent_kafka import Producer

from stack.gateway import Gateway
from stack.kafka_broker import Broker, make_topics

STREAMS = ("queries", "clicks")
_TRIES = 240  # half a second apart: the server is killed now and then
_OVERWRITTEN, _NEWEST = 0.15, 4  # how often an object is written again, longer; one of the newest of its stream


class Logs(Protocol):
    """`disk`: the folder in which the oracle sees every line."""

    disk: Path

    def source(self, stream: str) -> str:
        """What the pipeline's file says of a stream, as JSON."""
        ...

    def write(self, stream: str, lines: list[str]) -> None:
        """Add lines to a stream's logs, each once."""
        ...


class GrowingFiles:
    """Four files a stream, each appended to for a minute."""

    def __init__(self, folder: Path) -> None:
        self.disk = folder / "logs"
        for stream in STREAMS:
            (self.disk / stream).mkdir(parents=True)

    def source(self, stream: str) -> str:
        """Files."""
        return json.dumps({"kind": "files", "path": f"{self.disk}/{stream}/*.jsonl"})

    def write(self, stream: str, lines: list[str]) -> None:
        """Append."""
        with (self.disk / stream / f"{int(time.time()) // 60 % 4}.jsonl").open("a") as log:
            log.write("".join(f"{line}\n" for line in lines))


class Objects:
    """An object for each call, or lines added to one by writing it again, as shippers of logs do.

    The server is asked without the proxy, until it has taken the object. `moods` counts what was overwritten.
    """

    def __init__(self, server: Gateway, bucket: str, seed: int, moods: Counter[str]) -> None:
        self.disk = server.folder / "data" / bucket / "logs"
        self._bucket, self._numbers = bucket, itertools.count(1)
        self._rng, self._moods = random.Random(seed), moods
        self._newest = {stream: deque[tuple[str, bytes]](maxlen=_NEWEST) for stream in STREAMS}
        known = server.environment()
        self._s3 = boto3.client(
            "s3",
            endpoint_url=known["AWS_ENDPOINT_URL"],
            aws_access_key_id=known["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=known["AWS_SECRET_ACCESS_KEY"],
            region_name=known["AWS_REGION"],
            config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
        )

    def source(self, stream: str) -> str:
        """Objects."""
        return json.dumps({"kind": "files", "path": f"s3://{self._bucket}/logs/{stream}/*.jsonl"})

    def write(self, stream: str, lines: list[str]) -> None:
        """Put one object. Errors: AssertionError if the server stays away."""
        if not lines:
            return
        newest, key, body = self._newest[stream], f"logs/{stream}/{next(self._numbers):08d}.jsonl", b""
        if newest and self._rng.random() < _OVERWRITTEN:
            key, body = newest.pop()
            self._moods["overwrite"] += 1
        body += "".join(f"{line}\n" for line in lines).encode()
        self._put(key, body)
        newest.append((key, body))

    def _put(self, key: str, body: bytes) -> None:
        for _ in range(_TRIES):
            try:
                self._s3.put_object(Bucket=self._bucket, Key=key, Body=body)
                return
            except (BotoCoreError, ClientError):
                time.sleep(0.5)
        raise AssertionError(f"{key}: the store took it in none of {_TRIES} tries")


class Topics:
    """A topic of four partitions for each stream; on the disk is what the broker has acknowledged, or will."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker, self.disk = broker, folder / "logs"
        clients: dict[str, Any] = {"bootstrap.servers": broker.servers}
        make_topics(broker.servers, STREAMS, 4)
        # Idempotent, so that a try whose answer was lost adds no message of its own.
        self._producer = Producer(clients | {"enable.idempotence": True, "linger.ms": 5, "message.timeout.ms": 300_000})
        for stream in STREAMS:
            (self.disk / stream).mkdir(parents=True)

    def source(self, stream: str) -> str:
        """A topic."""
        return json.dumps({"kind": "kafka", "servers": self.broker.servers, "topic": stream})

    def write(self, stream: str, lines: list[str]) -> None:
        """Send, and wait until all is acknowledged. Errors: AssertionError if the broker stays away."""
        for line in lines:
            self._producer.produce(stream, line)
        left = self._producer.flush(_TRIES / 2)
        assert not left, f"{stream}: the broker has not acknowledged {left} messages in {_TRIES / 2:g} s"
        with (self.disk / stream / "0.jsonl").open("a") as log:
            log.write("".join(f"{line}\n" for line in lines))
