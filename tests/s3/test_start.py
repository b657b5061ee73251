"""A process that begins to work on a lake on S3: few waits, and no guard less than where it looks at each table."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from clickjoin.agreement import facts
from clickjoin.agreement.check import require_agreement
from clickjoin.config import Pipeline
from clickjoin.dispatcher.journal import Journal
from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake.log_looks import logs
from clickjoin.lake_setup import initialise
from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.model.txn import Txn
from clickjoin.schemas import ALL, BY_NAME
from clickjoin.schemas.format import KEY
from stack.gateway import Gateway
from tests.s3.proxy import Proxy
from tests.unit.lakes import NOON, Batches
from tests.unit.lakes import pipeline as pipeline_of

DELAY, MOST_ROUNDS = 0.05, 40
NAMES = tuple(BY_NAME)


@pytest.fixture(scope="module", autouse=True)
def bucket(gateway: Gateway) -> Iterator[None]:
    """This process asks the server itself, but for what a test has by a proxy."""
    gateway.bucket("starts")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in gateway.environment().items():
            patch.setenv(name, value)
        yield


@pytest.fixture
def proxy(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """This process reaches the server by a proxy."""
    made = Proxy(gateway.port)
    for name, value in gateway.environment(made.port).items():
        monkeypatch.setenv(name, value)
    yield made
    made.stop()


@pytest.fixture
def pipeline(request: pytest.FixtureRequest, tmp_path: Path) -> Pipeline:
    """A pipeline with a lake of each test's own, in which three batches were joined."""
    place = f"s3://starts/{request.node.name.replace('[', '-').replace(']', '')}"
    made = pipeline_of(tmp_path, lake=place)
    Batches(made).run(1, 3)
    return made


@contextmanager
def slow(proxy: Proxy) -> Iterator[list[float]]:
    """Have each request take DELAY longer; when each has come."""
    came, lock = list[float](), threading.Lock()

    def mood(method: str, path: str) -> None:
        with lock:
            came.append(time.monotonic())
        time.sleep(DELAY)

    proxy.mood = mood
    yield came
    proxy.mood = lambda method, path: None


def rounds(came: list[float]) -> float:
    """The time in which a request was waited for, in delays."""
    waited, until = 0.0, 0.0
    for at in sorted(came):
        waited += max(at + DELAY - max(at, until), 0.0)
        until = max(until, at + DELAY)
    return waited / DELAY


def files(gateway: Gateway, pipeline: Pipeline, table: str) -> Path:
    return gateway.folder / "data" / pipeline.root.removeprefix("s3://") / table / "_delta_log"


def test_a_start_waits_a_few_times(pipeline: Pipeline, proxy: Proxy) -> None:
    with slow(proxy) as came:
        delta = ArrowTables(pipeline.root)
        assert initialise(pipeline, delta) == []
        assert Journal(delta, "p", "main", "join").load().last == 3
    assert len(came) > 2 * len(ALL)  # all were looked at, and by requests that were counted
    assert rounds(came) < MOST_ROUNDS


def test_a_table_that_was_looked_at_ahead_is_none_that_was_opened(pipeline: Pipeline) -> None:
    """What a batch says it has seen is of what it has opened: of a table looked at ahead it has seen nothing."""
    delta = ArrowTables(pipeline.root)
    with delta.looked_at(*NAMES):
        assert delta.is_ahead("joined")
        assert delta.exists("joined")
        delta.require_fit("joined")
        assert logs(delta, NAMES)["joined"].version == 4
        assert delta.shown() == {}
        assert delta.version("joined") == 4
        assert set(delta.shown()) == {"joined"}
    assert initialise(pipeline, delta) == []
    assert "quarantine" not in delta.shown()


def test_a_copy_from_ahead_is_looked_at_when_it_is_opened(pipeline: Pipeline) -> None:
    delta, other = ArrowTables(pipeline.root), Batches(pipeline)
    delta.look_at(NAMES)
    other.run(4, 4)
    assert logs(delta, ["foreign", "registry"])["registry"].txns["p/main/join"] == 4
    other.run(5, 5)
    assert delta.version("joined") == 6
    assert delta.latest_txn_version("registry", "p/main/join") == 5
    with delta.looked_at(*NAMES):
        assert delta.is_ahead("primary")


def test_a_copy_from_ahead_commits_nothing_twice(pipeline: Pipeline) -> None:
    """Another process settles the batch meanwhile: the store refuses the next version, and the next look finds it."""
    delta, other = ArrowTables(pipeline.root), Batches(pipeline)
    delta.look_at(NAMES)
    other.run(4, 4)
    assert not delta.commit_txn_only("registry", Txn("p/main/join", 4))
    assert delta.commit_txn_only("joined", Txn("somebody", 1))
    assert ArrowTables(pipeline.root).version("joined") == 6


@pytest.mark.parametrize("same", [True, False])
def test_columns_that_another_adds_meanwhile(pipeline: Pipeline, same: bool) -> None:
    """The same, or others: what was looked at ahead cannot be changed, and is looked at again."""
    delta = ArrowTables(pipeline.root)
    with delta.looked_at(*NAMES):
        assert "price" not in delta.columns("joined")
        ArrowTables(pipeline.root).add_columns("joined", {"price" if same else "height": "BIGINT"})
        delta.add_columns("joined", {"price": "BIGINT"})
        assert delta.columns("joined")["price"] == "long"
    assert ("height" in ArrowTables(pipeline.root).columns("joined")) is not same


def test_statistics_that_another_has_kept_meanwhile(pipeline: Pipeline) -> None:
    delta = ArrowTables(pipeline.root)
    delta.add_columns("joined", {"price": "BIGINT", "height": "BIGINT"})
    with delta.looked_at(*NAMES):
        delta.open("joined")
        ArrowTables(pipeline.root).add_statistics("joined", ["height"])
        delta.add_statistics("joined", ["price"])
    said = (ArrowTables(pipeline.root).open("joined").metadata().configuration or {})["delta.dataSkippingStatsColumns"]
    assert {"price", "height"} <= set(said.split(","))


def test_two_formats_and_a_newer_one(pipeline: Pipeline) -> None:
    ArrowTables(pipeline.root).open("metrics").alter.set_table_properties({KEY: "99"}, raise_if_not_exists=False)
    with pytest.raises(LakeError, match="metrics: is of format 99"):
        initialise(pipeline)


def test_joins_go_on_while_the_facts_are_taken(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each look at logs a batch is joined: nothing disagrees, as what must be there is read later."""
    other, number = Batches(pipeline), iter(range(4, 99))
    taken = list[tuple[str, ...]]()

    def joining(delta: ArrowTables, names: tuple[str, ...]) -> object:
        at = next(number)
        other.run(at, at)
        taken.append(tuple(names))
        return logs(delta, names)

    monkeypatch.setattr(facts, "logs", joining)
    assert initialise(pipeline) == []
    assert (taken[0], taken[-2:], "joined" in taken[1]) == (("journal",), [("registry",), ("journal",)], True)


def test_the_order_of_looks_is_what_keeps_them_quiet(pipeline: Pipeline) -> None:
    """The test above can fail: with the journal of before the joins, it is the tables that are ahead."""
    stale = ArrowTables(pipeline.root)
    stale.look_at(NAMES)
    before = logs(stale, ["journal"])["journal"]
    Batches(pipeline).run(4, 4)
    found = facts.gather(stale, "p", stale)
    key = ("main", "join")
    behind = replace(found.sequences[key], planned=before.txns["p/main/join/planned"])
    assert not facts_disagree(found)
    assert facts_disagree(replace(found, sequences={key: behind}))


def facts_disagree(found: facts.Facts) -> bool:
    from clickjoin.agreement.rules import disagreements

    return bool(disagreements(found))


def test_a_torn_entry_is_named_as_ever(gateway: Gateway, pipeline: Pipeline) -> None:
    place = files(gateway, pipeline, "registry_boundary")
    sorted(place.glob("*.json"))[0].write_bytes(b"")
    with pytest.raises(LakeError, match=r"registry_boundary/_delta_log/0{20}\.json: is empty"):
        initialise(pipeline)


def test_a_missing_checkpoint_is_named_as_ever(gateway: Gateway, pipeline: Pipeline) -> None:
    delta = ArrowTables(pipeline.root)
    row = dict.fromkeys(BY_NAME["metrics"].names) | {"replica": "somebody", "sequence": "join"}
    assert delta.append("metrics", [row], Txn("somebody", 1))
    delta.open("metrics").create_checkpoint()
    for file in files(gateway, pipeline, "metrics").glob("*.checkpoint.parquet"):
        file.unlink()
    with pytest.raises(LakeError, match=r"metrics/_delta_log/_last_checkpoint: names checkpoint 1, which is not there"):
        initialise(pipeline)


def test_a_pointer_past_the_end_of_a_log_is_named(gateway: Gateway, pipeline: Pipeline) -> None:
    """As where the pointer of a newer lake was copied over an older log: all entries are there, and nothing is lost."""
    place = files(gateway, pipeline, "journal")
    (place / "_last_checkpoint").write_text('{"version":9999,"size":10}')
    with pytest.raises(LakeError, match=r"journal/_delta_log/_last_checkpoint: names checkpoint 9999.*reads its table"):
        initialise(pipeline)


def test_an_older_copy_tells_of_no_log_that_got_shorter(gateway: Gateway, pipeline: Pipeline) -> None:
    delta = ArrowTables(pipeline.root)
    assert initialise(pipeline, delta) == []
    newest = max(files(gateway, pipeline, "registry").glob("*.json"))
    newest.unlink()
    with pytest.raises(LakeError, match="registry: is older than table joined, or has lost commits"):
        require_agreement(delta, pipeline)


def test_nothing_is_written_before_the_store_has_kept_its_word(gateway: Gateway, proxy: Proxy, tmp_path: Path) -> None:
    pipeline = pipeline_of(tmp_path, lake="s3://starts/broken-word")
    with (
        proxy.rule("note", "PUT", "*", before=lambda path: (gateway.folder / f"data{path}").unlink(missing_ok=True)),
        pytest.raises(ConfigError, match="ignores If-None-Match"),
    ):
        initialise(pipeline)
    assert not list((gateway.folder / "data/starts/broken-word").rglob("*.json"))


def test_what_the_probe_finds_goes_before_what_the_loads_find(proxy: Proxy, tmp_path: Path) -> None:
    pipeline = pipeline_of(tmp_path, lake="s3://nowhere/x")
    with pytest.raises(ConfigError, match="there is no such bucket"):
        initialise(pipeline)


@pytest.mark.parametrize("lake", ["s3", "local"])
def test_a_journal_is_read_from_its_last_snapshot(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lake: str
) -> None:
    """A join's: a plan that is whole comes now and then; the rows since, and no others, are read."""
    if lake == "local":
        pipeline = pipeline_of(tmp_path, "p")
        initialise(pipeline)
    monkeypatch.setattr("clickjoin.dispatcher.journal.SNAPSHOT_EVERY", 4)
    batches = Batches(pipeline)
    for number in range(4, 12):
        plan = replace(batches.fresh(number), snapshot=number % 4 == 1)
        batches.journal.plan(plan, NOON)
        batches.journal.settle(number, {}, NOON)
    asked = list[int]()
    read = ArrowTables.read

    def reading(self: ArrowTables, name: str, filters: list[tuple[str, str, int]], *more: object) -> object:
        rows = read(self, name, filters, *more)  # type: ignore[arg-type]
        asked.extend(rows["batch"].to_pylist())
        return rows

    monkeypatch.setattr(ArrowTables, "read", reading)
    assert Journal(ArrowTables(pipeline.root), "p", "main", "join").load().last == 11
    assert min(asked) == 9
