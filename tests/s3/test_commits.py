"""Programs that commit to one log on S3, where requests are held and answers are lost: none overwrites another."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import wait
from itertools import product

import pytest
from deltalake import DeltaTable

from clickjoin.engines.arrow import ArrowTables
from clickjoin.schemas import REGISTRY
from stack.gateway import Gateway
from tests.s3.proxy import Proxy
from tests.sampled import crossed
from tests.writers import PATH, Program

ROOT = "s3://commits/p"
KINDS = ("spark", "spark-2", "delta-rs", "delta-rs-2")
PAIRS = [(one, two) for one in KINDS for two in KINDS if one != two and not one.endswith("-2")]


class Writer(Program):
    """A process of its own that commits, by a proxy of its own."""

    def __init__(self, kind: str, gateway: Gateway, tmp: pytest.TempPathFactory) -> None:
        self.proxy = Proxy(gateway.port)
        env = os.environ | gateway.environment(self.proxy.port) | {"PYTHONPATH": PATH}
        super().__init__(kind, ROOT, env, tmp.mktemp("writers") / f"{kind}.log")

    def stop(self) -> None:
        """End both."""
        super().stop()
        self.proxy.stop()


@pytest.fixture(scope="module", autouse=True)
def environment(gateway: Gateway) -> Iterator[Mapping[str, str]]:
    """This process reads from the server itself, and by no proxy."""
    gateway.bucket("commits")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in gateway.environment().items():
            patch.setenv(name, value)
        yield gateway.environment()


@pytest.fixture(scope="module")
def writers(
    environment: Mapping[str, str], gateway: Gateway, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Writer]]:
    ArrowTables(ROOT).create(REGISTRY)
    made = {kind: Writer(kind, gateway, tmp_path_factory) for kind in KINDS}
    assert [writer.answer() for writer in made.values()] == ["ready"] * len(made)
    yield made
    for writer in made.values():
        writer.stop()


@pytest.fixture
def number(writers: dict[str, Writer]) -> int:
    """A number that no commit before had."""
    return _table().version() + 1


def _table() -> DeltaTable:
    return DeltaTable(f"{ROOT}/registry")


def _tokens() -> Counter[str]:
    return Counter(_table().to_pyarrow_table(columns=["token"])["token"].to_pylist())


def _entry(version: int) -> str:
    return f"*/registry/_delta_log/{version:020d}.json"


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_a_commit_that_slept_overwrites_none(writers: dict[str, Writer], number: int, one: str, two: str) -> None:
    """`one` is held as it sends its commit; `two` commits that version meanwhile. Both are there after."""
    with writers[one].proxy.rule("hold", "PUT", _entry(number)) as held:
        answer = writers[one].ask(do="append", ids="ab", app=f"one{number}", number=number)
        assert held.arrived.wait(60)
        assert writers[two].do(do="append", ids="c", app=f"two{number}", number=number) in (None, True)
        held.released.set()
        assert answer.result(120) in (None, True)
    rows = _tokens()
    assert (rows[f"one{number}"], rows[f"two{number}"]) == (2, 1)
    assert _table().version() == number + 1


COMMITS = [*product(("spark", "delta-rs"), ("append", "claim")), ("delta-rs", "plain")]


@pytest.mark.parametrize(("times", "commit"), crossed([1, 2], COMMITS))
def test_a_lost_answer_is_found_out(
    writers: dict[str, Writer], number: int, commit: tuple[str, str], times: int
) -> None:
    """The commit is made and the caller hears nothing: it is recognised as its own, and neither repeated nor lost."""
    kind, do = commit
    ids = "xyz" if do != "claim" else chr(0x4E00 + number)
    with writers[kind].proxy.rule("lose", "PUT", _entry(number), times) as lost:
        answer = writers[kind].do(do=do, ids=ids, app=f"lost{number}", number=number)
    assert len(lost.met) == times
    assert answer == {"append": None if kind == "spark" else True, "claim": 1, "plain": True}[do]
    assert _tokens()[f"lost{number}"] == len(ids)
    assert _table().version() == number


@pytest.mark.parametrize("kind", ["spark", "delta-rs"])
def test_a_store_that_is_asked_too_often_is_asked_again(writers: dict[str, Writer], number: int, kind: str) -> None:
    with writers[kind].proxy.rule("refuse", "PUT", "*", 2) as refused:
        writers[kind].do(do="append", ids="xyz", app=f"slow{number}", number=number)
    assert (len(refused.met), _tokens()[f"slow{number}"], _table().version()) == (2, 3, number)


def test_a_claim_beside_an_optimize_that_slept(writers: dict[str, Writer], number: int) -> None:
    """OPTIMIZE of the registry is held as it commits; a replica claims meanwhile; another cannot claim the same."""
    spark, one, two = (writers[kind] for kind in ("spark", "delta-rs", "delta-rs-2"))
    ids = "".join(chr(0x6000 + number + n) for n in range(10))
    with spark.proxy.rule("hold", "PUT", _entry(number)) as held:
        packed = spark.ask(do="pack")
        assert held.arrived.wait(60)
        assert one.do(do="claim", ids=ids, app="gc-one", number=number) == 10
        held.released.set()
        packed.result(120)
    assert two.do(do="claim", ids=ids, app="gc-two", number=number) == 0
    assert (_tokens()["gc-one"], _tokens()["gc-two"]) == (10, 0)


def test_writers_side_by_side_lose_nothing(writers: dict[str, Writer], number: int) -> None:
    """Four of them, two kinds, as fast as they can (CLICKJOIN_COMMITS=1000 for a thousand each)."""
    count = int(os.environ.get("CLICKJOIN_COMMITS", "6"))
    asked = [writer.ask(do="many", ids="m", app=f"many-{kind}", number=count) for kind, writer in writers.items()]
    wait(asked)
    assert [one.result() for one in asked] == [count] * len(writers)
    rows = _tokens()
    assert {kind: rows[f"many-{kind}"] for kind in writers} == dict.fromkeys(writers, count)
    assert _table().version() == number - 1 + count * len(writers)
