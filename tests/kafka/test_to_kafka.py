"""examples/to_kafka.py: each row of the output is one committed message, through kill -9, a second copy, rebuilds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from clickjoin.dates.rebuild import rebuild
from clickjoin.jobs.upkeep import forget
from clickjoin.model.span import Day
from tests.kafka.topics import Topics
from tests.sampled import in_full
from tests.spark.bench import Bench, click, query

ROOT = Path(__file__).parents[2]
Q = query("q")


def start(bench: Bench, topics: Topics, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "examples/to_kafka.py", f"{bench.pipeline.root}/joined", topics.servers]
    path = {"PYTHONPATH": str(ROOT / "spark_apps")}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*command, topics.name("out"), *more], cwd=ROOT, env=os.environ | path, **pipes)


def feed(bench: Bench, topics: Topics, *more: str) -> int:
    """Run it to its end; how many messages it says it has sent."""
    run = start(bench, topics, *more)
    said, wrong = run.communicate(timeout=120)
    assert run.returncode == 0, wrong
    return int(said.split()[0])


def committed(topics: Topics) -> list[tuple[str, dict[str, Any] | None]]:
    """What a consumer that reads committed finds: id and value, of each partition in order."""
    reader = Consumer({"bootstrap.servers": topics.servers, "group.id": "oracle", "isolation.level": "read_committed",
                       "enable.partition.eof": True})  # fmt: skip
    reader.assign([TopicPartition(topics.name("out"), number, 0) for number in range(3)])
    found, ends = [], 0
    while ends < 3:
        message = reader.poll(10)
        assert message is not None
        if message.error():
            ends += 1
        else:
            value = message.value()
            found.append((message.key().decode().split()[0], None if value is None else json.loads(value)))
    reader.close()
    return found


@pytest.fixture
def bench(topics: Topics, make: Callable[..., Bench]) -> Bench:
    topics.create("out", 3)
    bench = make()
    bench.queries(Q)
    return bench


def more_clicks(bench: Bench, low: int, high: int) -> list[str]:
    made = [click(f"c{n}", n, Q) for n in range(low, high)]
    bench.clicks(*made)
    bench.join()
    return [one["event_id"] for one in made]


@in_full
def test_once_each_through_kills_and_compaction(bench: Bench, topics: Topics) -> None:
    ids = more_clicks(bench, 0, 300)
    kills = 0
    while (run := start(bench, topics, "--rows", "1")) and kills < 4:
        while len(committed(topics)) < 60 * (kills + 1):
            time.sleep(0.02)
        run.kill()
        run.communicate()
        kills += 1
    assert run.wait(120) == 0
    run.communicate()
    assert Counter(name for name, _ in committed(topics)) == Counter(ids)
    ids += more_clicks(bench, 300, 310)
    bench.spark.sql(f"OPTIMIZE delta.`{bench.pipeline.root}/joined`").collect()
    ids += more_clicks(bench, 310, 315)
    assert feed(bench, topics) == 15
    assert feed(bench, topics) == 0
    found = committed(topics)
    assert Counter(name for name, _ in found) == Counter(ids)
    assert {row and row["primary_id"] for _, row in found} == {Q["event_id"]}


def test_what_is_rebuilt_or_forgotten_is_sent_again(bench: Bench, topics: Topics, tmp_path: Path) -> None:
    ids = more_clicks(bench, 0, 5)
    assert feed(bench, topics) == 5
    rebuild(bench.engine, Day(date(2026, 3, 1)).span, int(bench.clock.now * 1_000_000))
    (tmp_path / "ids").write_text(ids[0])
    forget(bench.spark, bench.pipeline, "main", print, ids=str(tmp_path / "ids"), apply=True, wait=0)
    feed(bench, topics)
    newest = dict(committed(topics))
    assert newest.pop(ids[0], "never sent") is None
    assert {name: row and row["token"] for name, row in newest.items()} == dict(
        bench.rows("joined", "event_id", "token")
    )


def test_the_first_of_two_copies_ends(bench: Bench, topics: Topics) -> None:
    ids = more_clicks(bench, 0, 3)
    first = start(bench, topics, "--wait", "0.2")
    assert first.stdout.readline() == "3 messages sent\n"
    assert feed(bench, topics) == 0
    assert first.wait(60) == 1
    assert "fenced" in first.communicate()[1].lower()
    assert Counter(name for name, _ in committed(topics)) == Counter(ids)


def test_a_topic_whose_version_nobody_knows_is_refused(bench: Bench, topics: Topics) -> None:
    more_clicks(bench, 0, 3)
    topics.send("out", [b"somebody's"])
    run = start(bench, topics)
    assert "--from" in run.communicate(timeout=60)[1]
    assert run.returncode == 1
