"""Several pipelines joined by one process: each event once, whichever of them fails, is behind, or is handed over."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from clickjoin.config import Several, load_several
from clickjoin.dispatcher.journal import Journal
from clickjoin.engine import Engine
from clickjoin.group import member as module
from clickjoin.group import slots
from clickjoin.jobs.joining import join_group
from clickjoin.lake import restored
from clickjoin.model.errors import ServerLost, SourceError
from tests.sampled import some
from tests.spark.bench import Bench, event_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from clickjoin.rounds import Settled

Benches = dict[str, Bench]


def write(bench: Bench, clicks: range) -> None:
    """Clicks, each with a query of its own; they are of the last minutes, for jobs go by the machine's clock."""
    bench.queries(*({"event_id": event_id(f"q{n}", n)} for n in clicks))
    bench.clicks(*({"event_id": event_id(f"c{n:03}", n), "query_id": event_id(f"q{n}", n)} for n in clicks))


def joined_once(bench: Bench, clicks: int) -> bool:
    return bench.hosts("joined") == [f"c{n:03}" for n in range(clicks)]


@pytest.fixture
def benches(make: Any, tmp_path_factory: pytest.TempPathFactory) -> Benches:
    """Three pipelines of 20 clicks each; `slow` takes them in many batches."""
    found = {}
    for name in ("one", "two", "slow"):
        most = 4 if name == "slow" else 1000
        bench: Bench = make(pipeline=name, batch={"max_events": most, "lease": "2s", "hand_over": "1s"})
        write(bench, range(20))
        found[name] = bench
    return found


def several(benches: Benches) -> Several:
    return Several(tuple(bench.pipeline for bench in benches.values()), {})


def test_each_is_joined_once_and_retried(spark: SparkSession, benches: Benches) -> None:
    late = {"event_id": event_id("late", 0), "query_id": event_id("missing", 0)}
    benches["one"].clicks(late)
    said: list[str] = []
    done = join_group(spark, several(benches), "main", said.append, lease=6)
    assert (done["ok"], done["failed"], done["known"]) == (True, {}, ["one", "slow", "two"])
    assert done["joined"] == 60
    assert all(found["joined"] == 20 for found in done["pipelines"].values())
    assert all(joined_once(bench, 20) for bench in benches.values())
    assert benches["one"].places()["pending"] == ["late"]
    assert {line.split(":")[0] for line in said} == {"one", "two", "slow"}
    assert json.dumps(done)


def test_one_that_cannot_go_on_leaves_the_others_alone(
    spark: SparkSession, benches: Benches, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Engine.join_once

    def fails(self: Engine) -> Settled | None:
        if self.pipeline.pipeline == "two":
            raise SourceError("/logs: no such folder", remedy="Mount it")
        return own(self)

    monkeypatch.setattr(Engine, "join_once", fails)
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.01)
    given, said = several(benches), list[str]()
    done = join_group(spark, Several(given.good, {"x.yaml": "is not YAML"}), "main", said.append, lease=8)
    assert done["failed"] == {"x.yaml": "is not YAML", "two": "/logs: no such folder. Mount it"}
    assert done["ok"] is False
    assert done["verdict"] == "x.yaml: is not YAML\ntwo: /logs: no such folder. Mount it"
    assert sum("again in" in line for line in said) == module._MOST_FAILURES
    assert joined_once(benches["one"], 20)
    assert joined_once(benches["slow"], 20)


def test_a_lake_that_is_gone_is_not_made_again(spark: SparkSession, benches: Benches) -> None:
    benches["two"].disk.parent.rename(benches["two"].folder / "elsewhere")
    done = join_group(spark, several(benches), "main", lambda _: None, lease=3, known="one two")
    assert set(done["failed"]) == {"two"}
    assert "holds no tables of this pipeline" in done["failed"]["two"]
    assert not benches["two"].disk.parent.exists()
    assert done["known"] == ["one", "slow", "two"]


@pytest.mark.parametrize("hands_over", some([False, True], 2))
def test_one_whose_lake_is_another_now_is_opened_again(
    spark: SparkSession, benches: Benches, monkeypatch: pytest.MonkeyPatch, hands_over: bool
) -> None:
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.01)
    two, left = benches["two"], threading.Event()

    def said(text: str) -> None:
        if text.startswith("two: ") and " join " in text and not left.is_set():
            left.set()
            restored.leave_mark(two.pipeline.root, "a test", two.engine.now())
            write(two, range(20, 40))

    done = join_group(spark, several(benches), "main", said, lease=6, hands_over=hands_over)
    assert done["ok"]
    two.reload()
    assert joined_once(two, 40)


@pytest.mark.parametrize("step", some(["take_turn", "begin_turn"], 2))
def test_one_whose_hand_over_fails_once_takes_over_again(
    spark: SparkSession, benches: Benches, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.01)
    own, failed, two, left = getattr(Journal, step), threading.Event(), benches["two"], threading.Event()

    def fails(self: Journal, *args: Any) -> Any:
        if "/two/" in self._small.path("journal") and not failed.is_set():
            failed.set()
            raise OSError(5, "the disk is away")
        return own(self, *args)

    def said(text: str) -> None:
        if text.startswith("two: ") and " join " in text and not left.is_set():
            left.set()
            write(two, range(20, 40))

    monkeypatch.setattr(Journal, step, fails)
    done = join_group(spark, several(benches), "main", said, lease=6, hands_over=True)
    assert (failed.is_set(), left.is_set(), done["ok"]) == (True, True, True)
    assert joined_once(two, 40)


def test_one_that_hangs_is_given_up_when_its_turn_is_over(
    spark: SparkSession, benches: Benches, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, answers = Engine.join_once, threading.Event()

    def hangs(self: Engine) -> Settled | None:
        if self.pipeline.pipeline == "two":
            answers.wait(60)
        return own(self)

    monkeypatch.setattr(Engine, "join_once", hangs)
    monkeypatch.setattr(slots, "STUCK_BEHIND", 2.0)
    begun = time.monotonic()
    done = join_group(spark, several(benches), "main", lambda _: None, lease=6)
    answers.set()
    assert 6 <= time.monotonic() - begun < 20
    assert set(done["failed"]) == {"two"}
    assert "has not ended for" in done["failed"]["two"]
    assert joined_once(benches["one"], 20)
    assert joined_once(benches["slow"], 20)


def test_one_whose_code_exits_leaves_the_others_alone(
    spark: SparkSession, benches: Benches, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Engine.join_once

    def exits(self: Engine) -> Settled | None:
        return sys.exit("no licence") if self.pipeline.pipeline == "two" else own(self)

    monkeypatch.setattr(Engine, "join_once", exits)
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.01)
    done = join_group(spark, several(benches), "main", lambda _: None, lease=6)
    assert done["failed"] == {"two": "SystemExit: no licence"}
    assert joined_once(benches["one"], 20)


def test_a_lost_server_ends_the_work_of_all(
    spark: SparkSession, benches: Benches, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(self: Engine) -> Settled | None:
        raise ServerLost("the Spark server is lost")

    monkeypatch.setattr(Engine, "join_once", lost)
    with pytest.raises(ServerLost):
        join_group(spark, several(benches), "main", lambda _: None, lease=60)


def test_handed_over_one_by_one(spark: SparkSession, benches: Benches) -> None:
    """While both processes work, more comes; the first returns when the second has taken over the last of them."""
    found: dict[str, dict[str, Any]] = {}

    def run(name: str, lease: float) -> Callable[[], None]:
        def work() -> None:
            found[name] = join_group(spark, several(benches), "main", lambda _: None, lease=lease, hands_over=True)

        return work

    first, second = (threading.Thread(target=run(name, lease)) for name, lease in (("first", 60), ("second", 5)))
    first.start()
    time.sleep(3)
    second.start()
    for bench in benches.values():
        write(bench, range(20, 40))
    first.join(40)
    assert not first.is_alive()
    for bench in benches.values():
        write(bench, range(40, 50))
    second.join(60)
    assert not second.is_alive()
    assert [found[name]["ok"] for name in ("first", "second")] == [True, True]
    assert found["first"]["joined"] + found["second"]["joined"] == 150
    assert all(joined_once(bench, 50) for bench in benches.values())


def test_files_that_are_wrong_do_not_keep_others_from_being_read(benches: Benches, tmp_path: Any) -> None:
    (tmp_path / "half.yaml").write_text("pipeline: [")
    read = load_several(f"{benches['one'].file}:{tmp_path / 'half.yaml'}:{benches['two'].file}")
    assert [pipeline.pipeline for pipeline in read.good] == ["one", "two"]
    assert set(read.broken) == {str(tmp_path / "half.yaml")}
