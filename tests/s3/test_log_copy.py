"""Commits to S3 from a copy of the log: what it holds is the table, and looking less often takes no guard away."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake import log_copy, log_load, s3_table
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.objects import Objects
from clickjoin.lake.s3_table import S3Table
from clickjoin.lake.table_features import FeatureRefused
from clickjoin.model.errors import CommitStateUnknown, FilesGone, LakeReplaced
from clickjoin.model.txn import Txn
from clickjoin.schemas import REGISTRY, UNJOINABLE
from clickjoin.schemas.arrow import arrow_schema
from stack.gateway import Gateway
from tests.s3.places import asking, own_place
from tests.s3.proxy import Proxy, Rule

AT, APP = datetime(2026, 3, 1, 12, tzinfo=UTC), "p/main/join"


@pytest.fixture(scope="module", autouse=True)
def bucket(gateway: Gateway) -> Iterator[None]:
    """This process asks the server itself; delta-rs holds Python's lock for some requests: a proxy could not answer."""
    gateway.bucket("copies")
    with asking(gateway):
        yield


@pytest.fixture
def root(request: pytest.FixtureRequest) -> str:
    """A lake of each test's own, with an empty registry."""
    place = own_place("copies", request)
    ArrowTables(place).create(REGISTRY)
    return place


def claims(*ids: str, shard: int = 0) -> list[dict[str, Any]]:
    """Rows of the registry."""
    more = {"event_time": AT, "bucket": "2026-03-01T1200Z", "shard": shard, "token": "t", "outcome": "joined"}
    return [dict.fromkeys(REGISTRY.names) | more | {"event_id": one} for one in ids]


def there(root: str) -> list[str]:
    """Ids in the registry, as delta-rs reads it from S3 itself."""
    return sorted(DeltaTable(f"{root}/registry").to_pyarrow_table(columns=["event_id"])["event_id"].to_pylist())


def entry(version: int) -> str:
    return f"*/registry/_delta_log/{version:020d}.json"


@contextmanager
def counted(proxy: Proxy) -> Iterator[Callable[[], dict[str, int]]]:
    """Requests in here, by method."""
    with ExitStack() as rules:
        seen: dict[str, Rule] = {
            method: rules.enter_context(proxy.rule("note", method, "*")) for method in ("GET", "PUT", "HEAD", "DELETE")
        }
        yield lambda: {method: len(rule.met) for method, rule in seen.items() if rule.met}


def same(table: DeltaTable, uri: str) -> bool:
    """Whether a handle shows what delta-rs reads from S3 itself."""
    whole = DeltaTable(uri)
    mine, theirs = (pa.table(one.get_add_actions(flatten=True)) for one in (table, whole))
    apps = (APP, "other")
    return (
        table.version() == whole.version()
        and mine.sort_by("path").equals(theirs.sort_by("path"))
        and table.schema() == whole.schema()
        and table.metadata().configuration == whole.metadata().configuration
        and [table.transaction_version(app) for app in apps] == [whole.transaction_version(app) for app in apps]
    )


def test_a_copy_is_the_table(root: str) -> None:
    """Beside another writer, over a checkpoint, a delete and a change of settings; from the start and kept abreast."""
    one, other = ArrowTables(root), ArrowTables(root)
    for number in range(1, 60):
        writer, app = (one, APP) if number % 3 else (other, "other")
        assert writer.append("registry", claims(f"e{number}", shard=number % 4), Txn(app, number))
    other.open("registry").delete("shard = 3")
    other.open("registry").alter.set_table_properties({"delta.checkpointInterval": "40"})
    s3_table._checkpoints.submit(int).result()
    assert (DeltaTable(f"{root}/registry").version(), len(there(root))) == (61, 44)
    for delta in (one, other, ArrowTables(root), DeltaReader(root)):
        assert same(delta.open("registry"), f"{root}/registry")
    fresh = DeltaReader(root).open("registry")
    assert isinstance(fresh, S3Table)
    assert min(int(file.name[:20]) for file in (fresh.log.folder / "_delta_log").glob("*.json")) == 49  # a checkpoint's


def test_a_commit_is_four_requests_and_a_look_two(root: str, proxy: Proxy) -> None:
    delta = ArrowTables(root)
    delta.append("registry", claims("a"), Txn(APP, 1))
    with counted(proxy) as sent:
        assert delta.append("registry", claims("b"), Txn(APP, 2))
        # The file, the entry; whether the lake is still the same, and the entry before what was read.
        assert sent() == {"PUT": 2, "HEAD": 1, "GET": 1}
    with counted(proxy) as sent:
        assert not delta.append("registry", claims("b"), Txn(APP, 2))
        assert not delta.commit_txn_only("registry", Txn(APP, 2))
        assert sent() == {}
    with counted(proxy) as sent:
        assert delta.version("registry") == 2
        assert sent() == {"GET": 1, "HEAD": 1}
    with counted(proxy) as sent, delta.looked_at("registry"):
        assert delta.version("registry") == delta.open("registry").version() == 2
        assert sent() == {"GET": 1, "HEAD": 1}


def test_a_store_that_comes_back_older(root: str) -> None:
    """The newest version that this process knows is gone, or another's by now: it commits nothing on top of it."""
    delta = ArrowTables(root)
    assert delta.append("registry", claims("a"), Txn(APP, 1))
    assert delta.append("registry", claims("b"), Txn(APP, 2))
    store = Objects(f"{root}/registry")
    newest = f"_delta_log/{2:020d}.json"
    kept = store.get(newest)
    assert kept
    store._client().delete_object(Bucket=store._bucket, Key=f"{store._prefix}{newest}")
    with pytest.raises(LakeReplaced, match="registry: version 2 is not what this process has read there"):
        delta.append("registry", claims("c"), Txn(APP, 3))
    store.put(newest, kept.replace(b"b", b"d"))
    with pytest.raises(LakeReplaced, match="older data was put in its place"):
        delta.append("registry", claims("c"), Txn(APP, 3))
    store.put(newest, kept)
    assert delta.append("registry", claims("c"), Txn(APP, 3))


def test_who_is_behind_is_refused_looks_and_commits_once(root: str) -> None:
    one, two = ArrowTables(root), ArrowTables(root)
    for delta in (one, two):
        delta.open("registry")
    for number in range(1, 12):
        assert two.append("registry", claims(f"t{number}"), Txn("other", number))
    assert not one.append("registry", claims("never"), Txn("other", 11))  # of a copy of the same batch
    assert one.append("registry", claims("o1"), Txn(APP, 1))
    assert there(root) == sorted([*(f"t{number}" for number in range(1, 12)), "o1"])
    assert same(one.open("registry"), f"{root}/registry")


def test_four_threads_with_a_copy_each(root: str) -> None:
    def write(name: str) -> list[bool]:
        delta = ArrowTables(root)
        return [delta.append("registry", claims(f"{name}{number}"), Txn(name, number)) for number in range(8)]

    with ThreadPoolExecutor(4) as pool:
        assert [all(done) for done in pool.map(write, "abcd")] == [True] * 4
    assert there(root) == [f"{name}{number}" for name in "abcd" for number in range(8)]


def test_a_feature_that_came_meanwhile_is_found(root: str) -> None:
    """Known to this process is the table without it; its commit is refused, and its next look sees it."""
    one, other = ArrowTables(root), ArrowTables(root)
    one.open("registry")
    feature = '{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["clickjoinNobodys"]}}\n'
    table = other.open("registry")
    assert isinstance(table, S3Table)
    assert table.log.create(1, feature.encode())
    with pytest.raises(FeatureRefused, match="clickjoinNobodys"):
        one.append("registry", claims("a"), Txn(APP, 1))
    assert DeltaTable(f"{root}/registry").version() == 1


def test_a_file_that_has_gone_is_never_added(root: str, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    delta = ArrowTables(root)
    rows = pa.Table.from_pylist(claims("a"), schema=arrow_schema(REGISTRY))
    kept, gone = delta.write("registry", rows)[0], delta.write("registry", rows)[0]
    (gateway.folder / "data" / root.removeprefix("s3://") / "registry" / gone.path).unlink()
    with pytest.raises(FilesGone, match=r"1 of 1 files"):
        delta.add("registry", [gone], Txn(APP, 1))
    delta.open("registry")
    gone = delta.write("registry", rows)[0]  # by this process; then it sleeps, and somebody cleans up
    (gateway.folder / "data" / root.removeprefix("s3://") / "registry" / gone.path).unlink()
    began = log_copy.now()
    monkeypatch.setattr(s3_table, "now", lambda: began + 60)
    with pytest.raises(FilesGone, match=r"1 of 2 files"):
        delta.add("registry", [kept, gone], Txn(APP, 1))
    assert there(root) == []


@pytest.mark.parametrize("way", ["append", "add", "known"])
def test_nothing_is_committed_to_a_lake_that_was_replaced(root: str, way: str) -> None:
    delta = ArrowTables(root)
    assert delta.append("registry", claims("a"), Txn(APP, 1))
    ArrowTables(root).replaces("a rebuild", AT)
    ways: dict[str, Callable[[], object]] = {
        "append": lambda: delta.append("registry", claims("b"), Txn(APP, 2)),
        "add": lambda: delta.commit_txn_only("registry", Txn(APP, 2)),
        "known": lambda: delta.known("registry").commit_next([], Txn(APP, 2)),
    }
    with pytest.raises(LakeReplaced):
        ways[way]()
    assert DeltaTable(f"{root}/registry").version() == 1


def test_a_checkpoint_is_made_of_the_copy(root: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two requests, and what delta-rs reads there is the table; of a copy that has gone none is sent."""
    monkeypatch.setattr(s3_table, "_EVERY", 4)
    delta = ArrowTables(root)
    for number in range(1, 3):
        assert delta.append("registry", claims(f"e{number}"), Txn(APP, number))
    with counted(proxy) as sent:
        assert delta.append("registry", claims("e3"), Txn(APP, 3))
        s3_table._checkpoints.submit(int).result()
        assert sent() == {"PUT": 4, "HEAD": 1, "GET": 1}
    table = delta.open("registry")
    assert isinstance(table, S3Table)
    assert delta.append("registry", claims("e4"), Txn(APP, 4))
    assert {f"{3:020d}.checkpoint.parquet", "_last_checkpoint"} <= set(Objects(f"{root}/registry").listed("_delta_log"))
    fresh = DeltaReader(root).open("registry")
    assert isinstance(fresh, S3Table)
    assert fresh.log.newest - fresh.log._first == 1
    assert same(fresh, f"{root}/registry")
    with pytest.raises(FileNotFoundError, match="holds no checkpoint of version 2"):
        table.log.send_checkpoint(table.log.folder, 2)


def test_whoever_slept_commits_into_no_hole(root: str, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entries that came while it slept have been cleaned up by now: the next one of its own is not there."""
    one, two = ArrowTables(root), ArrowTables(root)
    assert one.append("registry", claims("a"), Txn(APP, 1))
    for number in range(2, 6):
        assert two.append("registry", claims(f"b{number}"), Txn("other", number))
    two.open("registry").create_checkpoint()
    for version in range(5):
        (gateway.folder / "data" / root.removeprefix("s3://") / f"registry/_delta_log/{version:020}.json").unlink()
    slept = log_copy.now() + 3 * 86400
    for module in (log_copy, log_load):
        monkeypatch.setattr(module, "now", lambda: slept)
    assert one.append("registry", claims("c"), Txn(APP, 2))
    assert DeltaTable(f"{root}/registry").version() == 6
    assert there(root) == ["a", "b2", "b3", "b4", "b5", "c"]


def test_an_answer_that_nobody_hears(root: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tries are lost, and then so is the question what is there: the next run finds its transaction."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    delta = ArrowTables(root)
    assert delta.append("registry", claims("a"), Txn(APP, 1))
    with proxy.rule("lose", "PUT", entry(2)) as lost:
        assert delta.append("registry", claims("b"), Txn(APP, 2))  # it is read, and is its own
    assert lost.met
    with (
        proxy.rule("lose", "PUT", entry(3)),
        proxy.rule("deny", "GET", entry(3)),
        pytest.raises(CommitStateUnknown, match="version 3 may or may not be there"),
    ):
        delta.append("registry", claims("c"), Txn(APP, 3))
    assert not delta.append("registry", claims("c"), Txn(APP, 3))
    with proxy.rule("deny", "PUT", entry(4)), pytest.raises(OSError, match="AccessDenied"):
        delta.append("registry", claims("d"), Txn(APP, 4))
    assert delta.append("registry", claims("d"), Txn(APP, 4))
    assert there(root) == ["a", "b", "c", "d"]


def test_what_changes_a_table_is_done_on_s3(root: str) -> None:
    delta = ArrowTables(root)
    delta.append("registry", claims("a", "b"), Txn(APP, 1))
    table = delta.open("registry")
    assert table.table_uri == f"{root}/registry"
    table.delete("event_id = 'a'")
    assert there(root) == ["b"]
    assert delta.read("registry", columns=["event_id"])["event_id"].to_pylist() == ["b"]
    delta.create(UNJOINABLE)
    delta.add_columns("unjoinable", {"note": "string"})
    assert "note" in DeltaReader(root).columns("unjoinable")


def test_copies_go_with_their_handles_and_processes(root: str) -> None:
    delta = ArrowTables(root)
    table = delta.open("registry")
    assert isinstance(table, S3Table)
    folder = table.log.folder
    assert folder.is_dir()
    delta.forget("registry")
    del table
    gc.collect()
    assert not folder.exists()
    code = "import os; from clickjoin.lake import log_copy; print(log_copy._folder(), flush=True); os._exit(9)"
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    left = Path(killed.stdout.strip())
    assert left.is_dir()
    log_copy._sweep()
    assert not left.exists()
    assert folder.parent.is_dir()  # this process's own
