"""Lake and logs both on a real S3 server: joined exactly once, whatever happens to objects meanwhile."""

from __future__ import annotations

import gzip
import json
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clickjoin.dates.backfill import RawLogs, land
from clickjoin.generate import Traffic, generate
from clickjoin.lake.objects import make_client
from clickjoin.model.errors import ConfigError
from clickjoin.model.places import store_of
from clickjoin.proposal.file import propose
from clickjoin.report.status import backlog
from clickjoin.report.validate import validate
from clickjoin.spark.session import in_process
from stack.gateway import Gateway
from tests.oracle import examine
from tests.sampled import in_full, some
from tests.spark.bench import Bench, Lake, click, counts, crash_at, query
from tests.spark.hand import found, verify

BUCKET = "joins"
TODAY = time.strftime("dt=%Y-%m-%d", time.gmtime())
Q, R = query("q"), query("r", 1)


class Cloud(Bench):
    """A pipeline whose logs are objects too, one for each call."""

    def __init__(self, spark: Any, folder: Path, gateway: Gateway, **fields: Any) -> None:
        self.s3, self.place, self.written = make_client(store_of("s3://any", gateway.environment())), folder.name, 0
        weakref.finalize(self, self.s3.close)
        self.logs = gateway.folder / "data" / BUCKET / folder.name / "logs"
        source = {
            stream: {"source": {"kind": "files", "path": f"s3://{BUCKET}/{folder.name}/logs/{stream}/dt=*/*"}}
            for stream in ("primary", "foreign")
        }
        lake = Lake(f"s3://{BUCKET}/{folder.name}/lake", gateway.folder / "data" / BUCKET / folder.name / "lake")
        super().__init__(spark, folder, {**source, **fields}, lake)

    def put(self, stream: str, name: str, data: bytes) -> None:
        """Write an object."""
        self.s3.put_object(Bucket=BUCKET, Key=f"{self.place}/logs/{stream}/{TODAY}/{name}", Body=data)

    def delete(self, stream: str, name: str) -> None:
        """Remove one."""
        self.s3.delete_object(Bucket=BUCKET, Key=f"{self.place}/logs/{stream}/{TODAY}/{name}")

    def _write(self, stream: str, records: tuple[Any, ...]) -> None:
        self.written += 1
        self.put(stream, f"{self.written}.jsonl", lines(*records))


def lines(*records: Any) -> bytes:
    return "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in records).encode()


@pytest.fixture(scope="module")
def spark(gateway: Gateway) -> Iterator[Any]:
    gateway.bucket(BUCKET)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in gateway.environment().items():
            patch.setenv(name, value)
        session = in_process("2", "1g", s3=True)
        yield session
        session.stop()


@pytest.fixture
def make(spark: Any, gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Cloud]:
    return lambda **fields: Cloud(spark, tmp_path_factory.mktemp("cloud"), gateway, **fields)


def test_two_replicas_join_all_of_it_once(make: Any, tmp_path: Path) -> None:
    """By workers and by this process; counted by the oracle, and every byte by verification."""
    bench: Cloud = make(batch={"driver_bytes": "100KB", "max_bytes": "300KB"}, retry={"max_attempts": 1})
    bench.clock.now = 1_800_000_000
    generate(tmp_path, Traffic(clicks=3000, queries=1200, broken=0.01, orphans=0.01, files=6, start=None))
    for stream, folder in (("primary", "queries"), ("foreign", "clicks")):
        for at, path in enumerate(sorted((tmp_path / folder).iterdir())):
            data, packed = path.read_bytes(), at % 2
            bench.put(stream, path.name + (".gz" if packed else ""), gzip.compress(data) if packed else data)
    east, west = (bench.replica(name, bench.spark.newSession()) for name in ("east", "west"))
    threads = [threading.Thread(target=engine.drain, args=(lambda _: None,)) for engine in (east, west)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    verdict = examine(f"{bench.logs}/foreign/*/*", f"{bench.logs}/primary/*/*", bench.disk)
    both = {stream: -count for stream, count in lines_of(bench).items()}  # each replica lands every line
    assert verdict.unaccounted == both, verdict.text()
    assert replace(verdict, unaccounted={}).ok, verdict.text()
    assert verdict.joined > 2800
    assert backlog(bench.pipeline, east.lake.delta, "east")["backlog_events"] == 0
    for replica in ("east", "west"):
        report = verify(bench, replica)
        assert (found(report), report.ok, report.notes) == ({}, True, ())


def lines_of(bench: Cloud) -> dict[str, int]:
    """Lines of each stream, as they lie on the server's disk."""
    found = {"primary": 0, "foreign": 0}
    for stream in found:
        for path in (bench.logs / stream).rglob("part-*"):
            data = path.read_bytes()
            found[stream] += len((gzip.decompress(data) if path.suffix == ".gz" else data).splitlines())
    return found


@pytest.mark.parametrize("local", some(["0B", "20MB"], 2))
def test_an_object_that_was_written_again_or_deleted(make: Any, local: str) -> None:
    bench: Cloud = make(batch={"driver_bytes": local})
    bench.put("primary", "q.jsonl", lines(Q, R))
    bench.put("foreign", "a.jsonl", lines(click("a", 2, Q)))
    bench.put("foreign", "b.jsonl", lines(click("b", 2, Q)))
    bench.put("foreign", "c.jsonl", lines(click("c", 2, Q)))
    bench.engine.join.next_join()
    bench.put("foreign", "a.jsonl", lines(click("a", 2, Q), click("a2", 3, R)))
    bench.delete("foreign", "b.jsonl")
    settled = bench.engine.join_once()
    assert counts(settled.metrics) == {"primary_in": 2, "events_in": 1, "joined": 1, "quarantined": 2}
    reasons = {row[0] for row in bench.rows("quarantine", "reason")}
    assert reasons == {"source-lost"}
    assert bench.join() == {"events_in": 2, "joined": 2}
    bench.put("foreign", "c.jsonl", lines(click("c", 2, Q), click("d", 3, R)))
    assert bench.join() == {"events_in": 2, "joined": 1, "repeats": 1}
    assert sorted(bench.hosts("joined")) == ["a", "a2", "c", "d"]
    assert found(verify(bench)) == {}


@pytest.mark.parametrize(("table", "after"), some([("foreign", True), ("quarantine", False), ("joined", False)], 3))
def test_a_crash_and_an_object_that_is_gone(make: Any, table: str, after: bool) -> None:
    """What has landed stays, what has not is on record as lost; the batch that goes on finds out which."""
    bench: Cloud = make()
    bench.queries(Q)
    bench.clicks(click("a", 1, Q), "{broken")
    with crash_at(bench.engine.lake, table, after=after):
        bench.engine.join_once()
    bench.delete("foreign", "2.jsonl")
    bench.engine = bench.replica("main")
    landed = table != "quarantine" or not after
    bench.join()
    assert bench.hosts("joined") == (["a"] if landed else [])
    assert not bench.engine.join_once()


def test_looks_from_outside(make: Any, tmp_path: Path) -> None:
    """`init --from-logs`, `validate`, `backfill --from logs` and its fence."""
    bench: Cloud = make()
    bench.queries(*(query(f"q{n}", n) for n in range(30)))
    bench.clicks(*(click(f"c{n}", n + 1, query(f"q{n}", n)) for n in range(30)))
    base = f"s3://{BUCKET}/{bench.place}/logs"
    text = propose(f"{base}/primary/dt=*/*", f"{base}/foreign/dt=*/*", tmp_path).text
    assert f'path: "{base}/foreign/dt=*/*"' in text
    assert "primary_id: query_id" in text
    seen = validate(bench.pipeline)
    assert seen.problems == []
    assert seen.samples["foreign"].good == 30
    old = RawLogs(primary=f"{base}/primary/{TODAY}/*", foreign=f"{base}/foreign/{TODAY}/*")
    old.require(bench.pipeline)
    assert land(bench.engine, old, lambda _: None) == 60
    with pytest.raises(ConfigError, match="raw logs on S3 are taken only below"):
        RawLogs(foreign=f"s3://{BUCKET}/other/*").require(bench.pipeline)


NAMES = (
    "a b.jsonl", "c+d.jsonl", "e%20f.jsonl", "e f.jsonl", "g=h&i.jsonl", "ü-日本.jsonl", "it's.jsonl", "#1?x=y.jsonl",
    "semi;colon,comma.jsonl", "@at~tilde!.jsonl", "(round) {curly}.jsonl", "%.jsonl", "a%2Fb.jsonl", "$HOME.jsonl",
    'q"q.jsonl',
)  # fmt: skip


@pytest.mark.parametrize("driver_bytes", [pytest.param("16MB", marks=in_full), "0B"])
def test_names_of_objects(make: Callable[..., Cloud], driver_bytes: str) -> None:
    cloud = make(batch={"driver_bytes": driver_bytes})
    wanted = {}
    for at, name in enumerate(NAMES):
        asked = query(f"q{at}", at)
        cloud.put("primary", name, lines(asked))
        record = click(f"c{at}", 30 + at, asked)
        cloud.put("foreign", name, lines(record))
        wanted[record["event_id"]] = name
    cloud.put("foreign", "empty.jsonl", b"")
    parts = [click(f"z{at}", 60 + at, query("q0", 0)) for at in range(3)]
    cloud.put("foreign", "members.jsonl.gz", b"".join(gzip.compress(lines(one)) for one in parts))
    cloud.put("foreign", "no end.jsonl", lines(click("last", 70, query("q1", 1))).rstrip(b"\n"))
    while cloud.engine.join_once():
        pass
    found = Counter(row[0] for row in cloud.rows("joined", "event_id"))
    assert set(found.values()) == {1}
    assert wanted.keys() | {one["event_id"] for one in parts} <= found.keys()
    assert len(found) == len(wanted) + 4
    place = {row[0]: row[1] for row in cloud.rows("foreign", "event_id", "path")}
    for event, name in wanted.items():
        assert place[event].endswith(f"/{name}")
    assert cloud.accounts()["agree"]


def test_a_lake_that_spark_begins(make: Callable[..., Cloud]) -> None:
    """Its commits are seen though all tables were looked at before: no lake could be begun."""
    bench = make(engine="spark")
    bench.queries(Q)
    bench.clicks(*(click(f"c{n}", 2 + n, Q) for n in range(3)))
    bench.join()
    assert bench.hosts("joined") == ["c0", "c1", "c2"]
    assert bench.accounts()["agree"]
    assert bench.engine.lake.delta.read("shard_timeline").num_rows == 1
