"""The jobs that a shell or a scheduler runs: what they do until the end, and what they report."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from clickjoin.jobs import joining
from clickjoin.jobs.run import counted
from clickjoin.jobs.run import drain as drained
from clickjoin.model.errors import ConfigError, SourceError
from clickjoin.report.status import replicas
from tests.sampled import in_full
from tests.spark.bench import Bench, crash_at, event_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def bench(make: Any) -> Bench:
    """Twenty clicks on ten queries, one of which never comes, in small batches."""
    # The jobs read the machine's clock, and so do the times of retries.
    made: Bench = make(
        batch={"max_events": 8, "lease": "1s"},
        retry={"max_attempts": 1, "max_age": "1ms", "first_delay": "1ms", "max_delay": "1ms"},
    )
    queries = [{"event_id": event_id(f"q{n}", -n)} for n in range(10)]
    made.queries(*queries[:9])
    made.clicks(*({"event_id": event_id(f"c{n:02}", n), "query_id": queries[n % 10]["event_id"]} for n in range(20)))
    return made


def test_drained(spark: SparkSession, bench: Bench) -> None:
    said: list[str] = []
    result = drained(spark, bench.pipeline, "main", said.append, check=True)
    assert result["ok"]
    assert (result["joined"], result["unjoinable"], result["waiting"], result["backlog_events"]) == (18, 2, 0, 0)
    assert result["batches"] == len(said) > 3
    assert result["accounts"]["agree"]
    assert result["problems"] == []
    assert json.dumps(result)
    assert bench.places() == {
        "joined": [f"c{n:02}" for n in range(20) if n % 10 != 9],
        "unjoinable": ["c09", "c19"],
    }


def test_redriven_and_retried(spark: SparkSession, bench: Bench) -> None:
    said: list[str] = []
    assert joining.redrive(spark, bench.pipeline, "main", said.append) == {"redriven": 2}
    assert said == ["2 events sent again"]
    bench.queries({"event_id": event_id("q9", -9)})
    joined = joining.join(spark, bench.pipeline, "main", said.append, lease=0.5)
    assert (joined["batches"], joined["primary_in"], joined["problems"]) == (1, 1, [])
    retried = joining.retry(spark, bench.pipeline, "main", said.append)
    assert (retried["joined"], retried["waiting"]) == (2, 0)
    assert bench.places() == {"joined": [f"c{n:02}" for n in range(20)]}
    assert json.dumps([joined, retried])


@pytest.mark.parametrize("dags", [["join", "retry"], ["join", "gc"]])
def test_a_join_tries_again_where_no_dag_does(spark: SparkSession, make: Any, dags: list[str]) -> None:
    """A process less for each pipeline, and nothing waits for ever."""
    bench: Bench = make(airflow={"dags": dags}, retry={"first_delay": "1ms", "max_delay": "1ms"})
    bench.clicks({"event_id": event_id("c", 1), "query_id": event_id("q", 0)})
    bench.queries({"event_id": event_id("other", 0)})
    joining.join(spark, bench.pipeline, "main", print, lease=0.5)
    bench.queries({"event_id": event_id("q", 0)})
    joining.join(spark, bench.pipeline, "main", print, lease=1)
    joining.join(spark, bench.pipeline, "main", print, lease=1)
    assert bench.places() == ({"pending": ["c"]} if "retry" in dags else {"joined": ["c"]})


@in_full
def test_a_batch_of_another_copy_is_waited_for(make: Any) -> None:
    """What it has landed and not published is in no place, and is not lost."""
    bench: Bench = make()
    bench.queries({"event_id": event_id("q", 0)})
    bench.clicks({"event_id": event_id("c", 1), "query_id": event_id("q", 0)})
    west = bench.replica("west")
    with crash_at(west.lake, "joined", after=False):
        west.join_once()
    bench.join()
    assert not counted(bench.engine, lambda _: None, patience=-1).agree
    said: list[str] = []

    def report_line(text: str) -> None:
        said.append(text)
        bench.replica("west").join_once()

    assert counted(bench.engine, report_line).agree
    assert said == [
        "the sums do not agree yet; counting again (batches in flight: bench/west/join/1)",
    ]


def test_a_missing_folder_is_said(spark: SparkSession, bench: Bench) -> None:
    """It fails the job, after all else has been done, and a drain is not all right."""
    (bench.folder / "foreign").rename(bench.folder / "elsewhere")
    said: list[str] = []
    with pytest.raises(SourceError, match=r"foreign.*Mount the folder") as caught:
        joining.join(spark, bench.pipeline, "main", said.append, lease=0.1)
    assert caught.value.retryable
    assert [text.split(":")[:2] for text in said] == [["problem", " missing"]]
    result = drained(spark, bench.pipeline, "main", said.append, check=False)
    assert (result["ok"], [problem["kind"] for problem in result["problems"]]) == (False, ["missing"])


@pytest.mark.parametrize("app", [joining.retry, joining.redrive])
def test_a_replica_that_never_joined(spark: SparkSession, bench: Bench, app: Any) -> None:
    before = bench.engine.lake.delta.version("journal")
    with pytest.raises(ConfigError, match=r"replica mian has never planned a batch\. Name one that has: main$"):
        app(spark, bench.pipeline, "mian", print)
    with pytest.raises(ConfigError, match=r"'A/b' is no name of a replica"):
        app(spark, bench.pipeline, "A/b", print)
    with pytest.raises(ConfigError, match=r"'backfill-x': names that begin with backfill- are of"):
        joining.join(spark, bench.pipeline, "backfill-x", print, 1.0)
    assert bench.engine.lake.delta.version("journal") == before
    assert joining.retry(spark, bench.pipeline, "new", print, may_be_new=True)["batches"] == 0
    assert replicas(bench.engine.lake.delta) == ["main"]


def test_what_is_reported_once_stands_in_a_drains_report(spark: SparkSession, make: Any) -> None:
    bench: Bench = make()
    queries = [{"event_id": event_id(f"q{n}", -n)} for n in range(4)]
    bench.queries(*queries)
    clicks = [{"event_id": event_id(f"c{n}", n), "query_id": queries[n % 4]["event_id"]} for n in range(40)]
    bench.clicks(*clicks[:20], clicks[0])
    first = drained(spark, bench.pipeline, "main", lambda _: None, check=True)
    assert (first["joined"], first["problems"]) == (20, [])
    log = bench.folder / "foreign" / "0.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    lines[10] = lines[10].replace(b"c10", b"x10")
    log.write_bytes(b"".join(lines))
    result = drained(spark, bench.pipeline, "main", lambda _: None, check=True)
    assert [(problem["kind"], problem["path"]) for problem in result["problems"]] == [("rewritten", str(log))]
    assert (result["joined"], result["accounts"]["agree"], result["ok"]) == (1, True, True)
    log.write_bytes(log.read_bytes() + b'{"half')
    assert drained(spark, bench.pipeline, "main", lambda _: None, check=True)["problems"] == []
    log.unlink()
    result = drained(spark, bench.pipeline, "main", lambda _: None, check=True)
    assert ([problem["kind"] for problem in result["problems"]], result["ok"]) == (["lost-tail"], False)


def test_one_join_takes_over_from_another(spark: SparkSession, make: Any) -> None:
    """As two tasks of a scheduler: the first returns long before its lease is over, and each click is joined once."""
    bench: Bench = make(batch={"trigger_interval": "50ms", "hand_over": "500ms"})
    query, found = {"event_id": event_id("q", 0)}, dict[str, dict[str, Any]]()
    bench.queries(query)

    def work(name: str, lease: float) -> None:
        found[name] = joining.join(spark, bench.pipeline, "main", lambda _: None, lease, hands_over=True)

    pair = [threading.Thread(target=work, args=args) for args in (("old", 300), ("new", 2))]
    clicks = list[str]()
    for thread, turn in zip(pair, (1, 2), strict=True):
        thread.start()
        while thread.is_alive() and bench.engine.join.journal.turn() < turn:
            time.sleep(0.1)
    while any(thread.is_alive() for thread in pair):
        clicks.append(f"c{len(clicks):03}")
        bench.clicks({"event_id": event_id(clicks[-1], len(clicks)), "query_id": query["event_id"]})
        time.sleep(0.2)
    assert found.keys() == {"old", "new"}
    assert found["new"]["joined"] > 0
    joining.join(spark, bench.pipeline, "main", lambda _: None, 0.5)
    assert bench.places() == {"joined": clicks}
