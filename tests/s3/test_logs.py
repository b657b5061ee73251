"""Logs on a real S3 server: what is planned, with how few requests, and what becomes of objects that change."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle

from clickjoin.kernel.read_lines import unchanged
from clickjoin.model.errors import ConfigError, SourceError
from clickjoin.model.split import Budget, SourceOffset
from clickjoin.sources.port import RECORDS_DDL
from clickjoin.sources.s3 import state
from clickjoin.sources.s3.source import S3Source
from clickjoin.spark.ship import ship_kernel
from stack.gateway import Gateway
from tests.s3.buckets import BucketFeed, requests
from tests.s3.proxy import Proxy
from tests.unit.sources_bench import BASE, PLENTY, events, numbers, spec
from tests.unit.test_sources_travel import WORKER, Worker

pytestmark = pytest.mark.usefixtures("environment")


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


def parquet(low: int, high: int) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"id": [f"h:1:{BASE + number}" for number in range(low, high)]}), out)
    return out.getvalue()


def csv(low: int, high: int) -> bytes:
    return b"id,text\n" + b"".join(b'h:1:%d,"a\nb"\n' % (BASE + number) for number in range(low, high))


@pytest.mark.parametrize(
    ("key", "data"),
    [
        ("a.jsonl", events(0, 50)), ("a.jsonl", events(0, 50)[:-1]), ("a.jsonl.gz", gzip.compress(events(0, 50))),
        ("a.jsonl.bz2", bz2.compress(events(0, 50))), ("a.jsonl.zst", zstd(events(0, 50))),
        ("a.parquet", parquet(0, 50)), ("a.csv", csv(0, 50)), ("a.csv.gz", gzip.compress(csv(0, 50))),
    ],
)  # fmt: skip
def test_all_formats(gateway: Gateway, name: str, key: str, data: bytes) -> None:
    fields = {"multiline": True, "format": "csv"} if ".csv" in key else {}
    feed = BucketFeed(gateway, "logs", f"{name}/*{key[1:]}", **fields)
    feed.put(f"{name}/{key}", data)
    assert feed.step() == list(range(50))
    assert feed.step() == []
    feed.restart()
    assert feed.step() == []


@pytest.fixture(scope="module")
def many(gateway: Gateway, logs: str) -> BucketFeed:
    """1,100 objects in one folder, and 100 in another."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in gateway.environment().items():
            patch.setenv(name, value)
        feed = BucketFeed(gateway, "logs", "many/dt=*/*.jsonl")
        numbered = ((day, n) for day, count in ((1, 1100), (2, 100)) for n in range(count))
        feed.put_all({f"many/dt=2026-03-0{day}/{n:04}.jsonl": events(n, n + 1) for day, n in numbered})
    return feed


def test_many_new_objects_are_few_requests(gateway: Gateway, many: BucketFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    with requests(gateway, many, monkeypatch) as seen:
        assert len(many.plan().splits) == 1200
    assert Counter(one.rpartition("/")[2] for one in seen) == {"logs": 1 + 2 + 1, "0000.jsonl": 1}  # lists, one look
    assert many.plan().splits == ()


def age(gateway: Gateway, feed: BucketFeed, key: str, seconds: float) -> None:
    """Have an object look as if it was written some time ago."""
    path = gateway.folder / "data" / feed.name / key
    past = time.time() - seconds
    os.utime(path, (past, past))


def known(feed: BucketFeed) -> int:
    """Objects that the journal holds, each by itself."""
    return sum(len(offset.payload.get("ids", "")) * 3 // 4 // 8 for offset in feed.offsets.values())


def test_old_objects_are_forgotten_and_never_read_again(
    gateway: Gateway, feed: BucketFeed, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "PAGE", 4)
    for number in range(40):
        key = f"{name}/dt=2020-01-{number % 20 + 1:02}/{number}.jsonl"
        feed.put(key, events(number, number + 1))
        age(gateway, feed, key, (20 - number % 20) * 86400)
    found = [number for _ in range(8) for number in feed.step(Budget(5, 1 << 30))]
    assert sorted(found) == list(range(40))
    assert known(feed) <= 4 + 4  # those of two days, and what shares a page with them
    today = f"{name}/dt={time.strftime('%Y-%m-%d', time.gmtime())}"
    feed.put(f"{today}/new.jsonl", events(40, 41))
    with requests(gateway, feed, monkeypatch) as seen:  # a new process
        assert feed.step() == [40]
    new = f"GET /logs/{today.replace('=', '%3D')}/new.jsonl"
    assert seen == ["GET /logs", "GET /logs", new, new]  # the folders' names, today's keys; a look, and the read
    feed.offsets["cursor"] = look_at_everything(feed.offsets["cursor"])
    with requests(gateway, feed, monkeypatch) as seen:
        plan = feed.plan()
    assert (plan.splits, plan.problems, len(seen)) == ((), (), 1 + 21)


def look_at_everything(cursor: SourceOffset) -> SourceOffset:
    """A cursor whose last look at all folders is long ago."""
    return SourceOffset("cursor", {**cursor.payload, "full": 0})


def test_what_shows_up_too_late_is_reported(gateway: Gateway, feed: BucketFeed, name: str, monkeypatch: Any) -> None:
    """An object in an old folder is read at the next look at everything; one whose own time is too old is named."""
    monkeypatch.setattr(state, "PAGE", 1)
    for number in range(3):
        feed.put(f"{name}/dt=2020-01-0{number + 1}/a.jsonl", events(number, number + 1))
        age(gateway, feed, f"{name}/dt=2020-01-0{number + 1}/a.jsonl", 9 * 86400 - number)
    assert feed.step() == [0, 1, 2]
    feed.put(f"{name}/dt=2020-01-01/b.jsonl", events(3, 4))
    feed.put(f"{name}/dt=2020-01-01/c.jsonl", events(4, 5))
    age(gateway, feed, f"{name}/dt=2020-01-01/c.jsonl", 5 * 86400)
    assert feed.step() == []
    feed.offsets["cursor"] = look_at_everything(feed.offsets["cursor"])
    feed.restart()
    plan = feed.plan()
    assert numbers(feed.read(plan.splits)) == [3]
    (problem,) = plan.problems
    assert problem.kind == "late-object"
    assert "about 1 objects showed up" in problem.detail
    feed.offsets["cursor"] = look_at_everything(feed.offsets["cursor"])
    feed.delete(f"{name}/dt=2020-01-01/c.jsonl")
    feed.restart()
    assert feed.plan().problems == ()


def test_keys_in_order_go_on_after_the_last(
    gateway: Gateway, many: BucketFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = BucketFeed(gateway, "logs", "many/dt=2026-03-01/*.jsonl", ordered=True)
    assert len(feed.plan().splits) == 1100
    feed.put("many/dt=2026-03-01/1200.jsonl", events(1200, 1201))
    with requests(gateway, feed, monkeypatch) as seen:
        assert feed.step() == [1200]
    assert len(seen) == 3  # one list, a look, the read
    feed.put("many/dt=2026-03-01/0000b.jsonl", events(1300, 1301))  # against the promise
    assert feed.step() == []
    feed.offsets["cursor"] = look_at_everything(feed.offsets["cursor"])
    feed.restart()
    assert feed.step() == [1300]


def test_a_backlog_survives_a_restart(feed: BucketFeed, name: str) -> None:
    """What a look has found and no batch has planned is found again, in whatever folder."""
    for number in range(9):
        feed.put(f"{name}/dt=2020-01-0{number + 1}/a.jsonl", events(number, number + 1))
    found = []
    for _ in range(3):
        found += feed.step(Budget(3, 1 << 30))
        feed.restart()
    assert sorted(found) == list(range(9))
    assert feed.step() == []


@pytest.fixture
def proxied(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    proxy = Proxy(gateway.port)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}")
    yield proxy
    proxy.stop()


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("AccessDenied", "access is denied"),
        ("ExpiredToken", "the credentials have expired"),
        ("RequestTimeTooSkewed", "clock is too far from the store's"),
        ("InvalidAccessKeyId", "does not know these credentials"),
    ],
)
def test_refusals_by_name(proxied: Proxy, feed: BucketFeed, name: str, code: str, why: str) -> None:
    feed.restart()
    with proxied.rule("deny", "GET", "*", code=code):
        with pytest.raises(ConfigError, match=f"s3://logs/{re.escape(name)}/dt=: .*{why}"):
            feed.plan()
        (problem,) = S3Source(feed.config, keep=False).plan({}, PLENTY).problems
    assert problem.kind == "unreadable"
    feed.put(f"{name}/dt=1/a.jsonl", events(0, 5))
    plan = feed.plan()
    with proxied.rule("deny", "GET", "*/a.jsonl", code=code), pytest.raises(SourceError, match=f"a.jsonl: .*{why}"):
        feed.read(plan.splits)


def test_no_such_bucket(gateway: Gateway) -> None:
    with pytest.raises(ConfigError, match="s3://nowhere/x: there is no such bucket"):
        BucketFeed(gateway, "nowhere", "x*").plan()


def test_a_busy_store_is_asked_again(proxied: Proxy, feed: BucketFeed, name: str) -> None:
    feed.restart()
    feed.put(f"{name}/dt=1/a.jsonl", events(0, 5))
    with proxied.rule("refuse", "GET", "*", times=2), proxied.rule("refuse", "GET", "*/a.jsonl", times=2):
        assert feed.step() == list(range(5))
    with proxied.rule("lose", "GET", "*", times=1):
        assert feed.step() == []


def test_a_worker_needs_no_credentials_and_no_boto3(gateway: Gateway, feed: BucketFeed, name: str) -> None:
    feed.put(f"{name}/dt=1/a.jsonl.gz", gzip.compress(events(0, 5)))
    feed.put(f"{name}/dt=1/b.jsonl", events(5, 7))
    ship_kernel()  # as a session does, before there is a task
    worker: Any = Worker()
    work = feed.source.read_through(worker, feed.plan().splits, spec(), unchanged, RECORDS_DDL)
    code = cloudpickle.dumps(work)
    assert gateway.environment()["AWS_SECRET_ACCESS_KEY"].encode() not in code
    line = [sys.executable, "-c", WORKER.replace('"pandas"', '"pandas", "boto3", "botocore"')]
    done = subprocess.run(line, input=code, capture_output=True, check=False, cwd="/", env={"PATH": os.environ["PATH"]})
    assert (done.stderr.decode(), done.stdout.decode().splitlines()[:2]) == ("", ["7", "[]"])
