"""A bucket of logs, a source on it, and what a caller does: keeps offsets as JSON, reads what was planned."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import pytest

from clickjoin.config import Files
from clickjoin.kernel.chunk import spread
from clickjoin.kernel.read_lines import read_chunk
from clickjoin.lake.objects import make_client
from clickjoin.model.places import store_of
from clickjoin.model.split import Budget, SourceOffset, SourcePlan, Split
from clickjoin.sources.s3.source import S3Source
from stack.gateway import Gateway
from tests.s3.proxy import Proxy
from tests.unit.sources_bench import PLENTY, numbers, spec


class BucketFeed:
    """A source over the keys of a glob in one bucket, and a client of our own to write with."""

    def __init__(self, gateway: Gateway, bucket: str, pattern: str, **fields: Any) -> None:
        self.name, self.s3 = bucket, make_client(store_of("s3://any", gateway.environment()))
        self.config = Files(kind="files", path=f"s3://{bucket}/{pattern}", **fields)
        weakref.finalize(self, self.s3.close)
        self.offsets: dict[str, SourceOffset] = {}
        self.restart()

    def restart(self) -> None:
        """As a new process: it knows what the journal holds."""
        self.source = S3Source(self.config)

    def put(self, key: str, data: bytes) -> None:
        """Write an object, over the one that is there."""
        self.s3.put_object(Bucket=self.name, Key=key, Body=data)

    def put_all(self, objects: dict[str, bytes]) -> None:
        """Write many."""
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda item: self.put(*item), objects.items()))

    def delete(self, key: str) -> None:
        """Remove an object."""
        self.s3.delete_object(Bucket=self.name, Key=key)

    def plan(self, budget: Budget = PLENTY) -> SourcePlan:
        """Plan, and keep the offsets as a caller would: through JSON."""
        plan = self.source.plan(self.offsets, budget)
        for offset in plan.offsets:
            self.offsets[offset.partition] = SourceOffset(**json.loads(json.dumps(asdict(offset))))
        return plan

    def read(self, splits: Sequence[Split], *, tasks: int = 1, **fields: Any) -> list[dict[str, Any]]:
        """Records of splits, as a Spark worker would make them."""
        work = spread(self.source.chunks(splits), [split.bytes for split in splits], tasks)
        batches = (batch for task in work for chunk in task for batch in read_chunk(chunk, spec(**fields)))
        rows = [row for batch in batches for row in batch.to_pylist()]
        return sorted(rows, key=lambda row: (row["path"], row["offset"]))

    def step(self, budget: Budget = PLENTY, **fields: Any) -> list[int]:
        """Plan and read; the numbers of the good events, in the keys' order."""
        return numbers(self.read(self.plan(budget).splits, **fields))


@contextmanager
def requests(gateway: Gateway, feed: BucketFeed, monkeypatch: Any) -> Iterator[list[str]]:
    """What a new source on the bucket asks of the server, by a proxy: method and path of each request."""
    proxy, seen = Proxy(gateway.port), list[str]()

    def note(method: str, path: str) -> None:
        seen.append(f"{method} {path}")

    proxy.mood = note  # type: ignore[assignment]
    with monkeypatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}")
        feed.restart()
        yield seen
    feed.restart()
    proxy.stop()


@pytest.fixture(scope="session")
def logs(gateway: Gateway) -> str:
    """The bucket of these tests."""
    gateway.bucket("logs")
    return "logs"


@pytest.fixture
def environment(gateway: Gateway, logs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """How this process reaches the server."""
    for name, value in gateway.environment().items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A folder of each test's own."""
    return request.node.name.replace("[", "-").replace("]", "")


@pytest.fixture
def feed(gateway: Gateway, name: str) -> BucketFeed:
    """Logs by date in that folder."""
    return BucketFeed(gateway, "logs", f"{name}/dt=*/*.jsonl*")
