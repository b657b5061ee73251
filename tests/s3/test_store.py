"""What a store answers that cannot hold a lake, or not now: refused by name before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from deltalake import DeltaTable

from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake import object_lock, objects
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.folders import moving_tables
from clickjoin.lake.log_entries import read_log
from clickjoin.lake.lost_files import bad_files
from clickjoin.lake.probe import fault_on_s3
from clickjoin.lake.readable import ReadableTables
from clickjoin.lake.requirements import require_writable
from clickjoin.lake.table_order import in_order_of_making, in_order_of_removing
from clickjoin.lake.tree import tree
from clickjoin.model.errors import ConfigError, LakeError, StoreBusy
from clickjoin.model.ids import moment
from clickjoin.model.txn import Txn
from clickjoin.schemas import REGISTRY
from stack.gateway import Gateway
from tests.s3.places import asking, own_place
from tests.s3.proxy import Proxy


@pytest.fixture(scope="module", autouse=True)
def bucket(gateway: Gateway) -> None:
    gateway.bucket("store")


@pytest.fixture
def root(request: pytest.FixtureRequest) -> str:
    """A lake of each test's own: what passed the probe is not asked again."""
    return own_place("store", request)


def test_a_store_that_keeps_its_word(proxy: Proxy, gateway: Gateway, root: str) -> None:
    with proxy.rule("note", "PUT", "*") as seen:
        require_writable(root)
        require_writable(root)
    assert len(seen.met) == 2  # asked once a process
    assert not list((gateway.folder / "data/store").rglob("_probe-*"))


def test_a_lost_answer_to_the_probe(proxy: Proxy, root: str) -> None:
    """The client sends it again, and finds its own object."""
    with proxy.rule("lose", "PUT", "*/_probe-*", times=1) as lost:
        require_writable(root)
    assert len(lost.met) == 1


def test_a_store_that_ignores_the_condition(proxy: Proxy, gateway: Gateway, root: str) -> None:
    def make_way(path: str) -> None:
        (gateway.folder / f"data{path}").unlink(missing_ok=True)

    overwrites = proxy.rule("note", "PUT", "*", before=make_way)
    with overwrites, pytest.raises(ConfigError, match=r"ignores If-None-Match.*one would be lost"):
        require_writable(root)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("AccessDenied", "access is denied"),
        ("ExpiredToken", "the credentials have expired"),
        ("RequestTimeTooSkewed", r"clock is too far from the store's.*timedatectl"),
        ("InvalidAccessKeyId", "does not know these credentials"),
    ],
)
def test_refusals_by_name(proxy: Proxy, code: str, why: str, root: str) -> None:
    with proxy.rule("deny", "PUT", "*", code=code), pytest.raises(ConfigError, match=f"{root}: .*{why}"):
        require_writable(root)


def test_a_wrong_secret(proxy: Proxy, monkeypatch: pytest.MonkeyPatch, root: str) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(ConfigError, match="does not know these credentials"):
        require_writable(root)


def test_no_such_bucket(proxy: Proxy) -> None:
    with pytest.raises(ConfigError, match=r"s3://nowhere/p: there is no such bucket\. Create the bucket"):
        require_writable("s3://nowhere/p")


def test_one_that_is_busy_or_away_passes(
    proxy: Proxy, gateway: Gateway, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    # Asked once: how often a busy store is asked again, and with what pauses, is tested where logs are read.
    monkeypatch.setattr(objects, "make_client", partial(objects.make_client, tries=1))
    with proxy.rule("refuse", "PUT", "*"), pytest.raises(StoreBusy, match="asks for fewer requests"):
        require_writable(root)
    away = Proxy(gateway.port)
    away.stop()
    for name, value in gateway.environment(away.port).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreBusy, match="does not answer"):
        require_writable(root)
    assert StoreBusy("x").retryable
    assert fault_on_s3(root)


def test_readers_hear_of_it_by_name(proxy: Proxy, root: str) -> None:
    ArrowTables(f"{root}-read").create(REGISTRY)
    with proxy.rule("deny", "GET", "*"), pytest.raises(LakeError, match=r"p-read/registry: access is denied \(403\)"):
        ReadableTables(f"{root}-read").read("registry")


@pytest.fixture
def grown(gateway: Gateway, root: str) -> Iterator[ArrowTables]:
    """A registry with a checkpoint and commits after it."""
    with asking(gateway):
        delta = ArrowTables(root)
        delta.create(REGISTRY)
        for number in range(1, 5):
            delta.commit_txn_only("registry", Txn("a", number))
            if number == 2:
                delta.open("registry").create_checkpoint()
        yield delta


def test_what_a_store_does_not_give_is_not_damaged(grown: ArrowTables, proxy: Proxy, gateway: Gateway) -> None:
    """A repair takes what is damaged out of its table: a log's checkpoint, or a data file."""
    row = dict.fromkeys(REGISTRY.names, "x") | {"event_time": moment(0), "shard": 0}
    assert grown.append("registry", [row], Txn("a", 5))
    held = names(gateway, grown, "registry")
    through = DeltaReader(grown.root)
    through.open("registry")
    for path in ("*.parquet", "*.checkpoint.parquet"):
        with proxy.rule("deny", "GET", path), pytest.raises(LakeError, match="access is denied"):
            (bad_files(through, "registry") if path == "*.parquet" else read_log(grown.path("registry")))
    assert names(gateway, grown, "registry") == held
    assert bad_files(through, "registry") == []


def names(gateway: Gateway, delta: ArrowTables, table: str) -> list[str]:
    folder = gateway.folder / "data" / delta.path(table).removeprefix("s3://")
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_table_moves_whole(grown: ArrowTables, gateway: Gateway) -> None:
    held = names(gateway, grown, "registry")
    with moving_tables(grown, "a test") as folders:
        aside = folders.put_aside("registry", moment(0))
        assert not grown.exists("registry")
        assert names(gateway, grown, "registry") == []
        assert DeltaTable(aside).version() == 4
        folders.rename(aside.rpartition("/")[2], "registry")
        assert names(gateway, grown, "registry") == held
        assert grown.latest_txn_version("registry", "a") == 4
        folders.remove("registry")
        assert names(gateway, grown, "registry") == []


def test_who_was_paused_while_moving_moves_nothing_more(
    grown: ArrowTables, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another has taken its place, and put a registry there: it stays."""
    monkeypatch.setattr(object_lock, "TRUSTED", 0.0)
    held = names(gateway, grown, "registry")
    with moving_tables(grown, "a rebuild") as folders:
        tree(grown.root).write(".tables.lock", b"another's")
        with pytest.raises(LakeError, match="has taken this one's place"):
            folders.put_aside("registry", moment(0))
    assert names(gateway, grown, "registry") == held
    assert names(gateway, grown, f"registry.put-aside-{moment(0):%Y%m%dT%H%M%SZ}") == []


@pytest.mark.parametrize("making", [False, True], ids=["removed", "made"])
def test_half_of_a_table_is_never_an_older_one(grown: ArrowTables, gateway: Gateway, making: bool) -> None:
    """Cut short after whatever file, it is the newest version or none: for delta-rs, and for the look at logs."""
    place = grown.path("registry")
    folder = gateway.folder / "data" / place.removeprefix("s3://")
    kept = {name: (folder / name).read_bytes() for name in names(gateway, grown, "registry")}
    order = [name for group in (in_order_of_making if making else in_order_of_removing)(list(kept)) for name in group]
    assert sorted(order) == sorted(kept)
    there = set() if making else set(kept)
    seen = set()
    for name in order:
        there ^= {name}
        _be(folder, {one: kept[one] for one in there})
        seen.add(_version(place))
        log = read_log(place)
        assert log.torn or log.version == -1 or log.txns["a"] == 4
    assert seen == {4, None}


def _be(folder: Path, files: dict[str, bytes]) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            path.unlink()
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def _version(place: str) -> int | None:
    try:
        return int(DeltaTable(place).version())
    except Exception:
        return None
