"""Two topics of a real broker, joined exactly once: through crashes, replicas, and what happens to topics meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from clickjoin.dispatcher.journal import JournalReader
from clickjoin.lake.folders import moving_tables
from clickjoin.model import failpoint
from clickjoin.model.split import LastRecord
from clickjoin.rebuild.journal import rebuild_journal
from clickjoin.report.explain import explain
from clickjoin.report.status import backlog
from clickjoin.report.validate import validate
from clickjoin.sources.open import open_source
from tests.kafka.topics import Topics
from tests.sampled import in_full, some
from tests.spark.bench import Bench, click, counts, query
from tests.spark.count import agrees
from tests.spark.hand import Hand, found, stopped, verify

Q, LATE = query("q"), query("late", 1)
Made = Callable[..., Bench]


def clicks(count: int, since: int = 0) -> list[dict[str, Any]]:
    return [click(f"c{n}", 2 + n, Q) for n in range(since, since + count)]


def drained(bench: Bench, replica: str = "main") -> list[dict[str, int]]:
    """Counts of all batches that there are, by an engine as new as after a restart."""
    engine, done = bench.replica(replica), []
    while settled := engine.join_once():
        done.append(counts(settled.metrics))
    return done


def once(bench: Bench, ids: Iterable[dict[str, Any]]) -> None:
    """The test's own count: each of these clicks is in `joined`, once, with its query, and nothing else is."""
    rows = bench.rows("joined", "event_id", "primary_id")
    assert [event for event, _ in rows] == sorted(each["event_id"] for each in ids)
    assert {named for _, named in rows} <= {Q["event_id"]}


def write_all(topics: Topics) -> None:
    topics.send("primary", [Q, b"{broken", None, Q])
    topics.send("foreign", [*clicks(4), click("c1", 3, Q), click("w", 9, LATE), b"["], partition=1)


def through(bench: Bench, topics: Topics) -> None:
    """All that is there, and then the late query and the retry that waits for it."""
    drained(bench)
    topics.send("primary", [LATE])
    assert drained(bench)
    bench.clock.now += 10
    assert counts(bench.replica("main").retry_once().metrics) == {"events_in": 1, "joined": 1}


def everything(bench: Bench) -> dict[str, Any]:
    """All rows, but of the journal: it names topics by ids that no other run has."""
    wanted = {"joined": ("event_id", "primary_id", "token"), "registry": ("event_id", "token", "outcome")}
    wanted |= dict.fromkeys(("primary", "foreign"), ("event_id", "offset", "length", "batch", "payload"))
    wanted["quarantine"] = ("stream", "reason", "raw", "offset", "length", "batch")
    wanted["pending"] = ("event_id", "round", "attempt", "state", "outcome", "batch")
    wanted["metrics"] = ("sequence", "batch", "events_in", "joined", "repeats", "quarantined", "backlog_events")
    return {name: bench.rows(name, *columns) for name, columns in wanted.items()}


WHOLE: dict[str, Any] = {}


@pytest.mark.parametrize("local", some(["0B", "4MB"], 2))
@pytest.mark.parametrize("point", some(["", *failpoint.POINTS], 4))
def test_joined_once_through_crashes(
    joined: Made, topics: Topics, monkeypatch: pytest.MonkeyPatch, point: str, local: str
) -> None:
    """Both batches are cut short, read by this process or by Spark's workers: tables are as if nothing had happened."""
    bench = joined(2, batch={"max_events": 4, "driver_bytes": local})
    write_all(topics)
    for _ in range(2 if point else 0):
        stopped(monkeypatch, point, lambda: bench.replica("main").join_once())
        if point != "settled":
            assert bench.replica("main").join_once()
    through(bench, topics)
    assert bench.places() == {"joined": ["c0", "c1", "c2", "c3", "w"]}
    assert agrees(bench)
    assert found(verify(bench)) == {}
    assert everything(bench) == WHOLE.setdefault("rows", everything(bench))
    reasons = [
        ("foreign", "broken-json", b"[", 6),
        ("primary", "broken-json", b"{broken", 1),
        ("primary", "tombstone", None, 2),
    ]
    assert bench.rows("quarantine", "stream", "reason", "raw", "offset") == reasons


@in_full
def test_offsets_are_where_people_look(joined: Made, topics: Topics) -> None:
    bench = joined(2, batch={"max_events": 4}, validation={"quarantine": 1, "unmatched": 1})
    write_all(topics)
    assert validate(bench.pipeline).problems == []
    assert bench.replica("main").join_once()
    left = backlog(bench.pipeline, bench.engine.lake.delta, "main")
    name = f"kafka:{topics.name('foreign')}"
    assert left["inputs"]["foreign"]["backlog_events"] == 3
    assert left["inputs"]["foreign"]["lag"] == {f"{name}/0": 0, f"{name}/1": 3}
    drained(bench)
    left = backlog(bench.pipeline, bench.engine.lake.delta, "main")
    assert left["backlog_events"] == 0
    step = explain(bench.pipeline, bench.engine.lake.delta, click("c2", 4, Q)["event_id"])["history"][0]
    assert (step["table"], step["path"], step["offset"]) == ("foreign", f"{name}/1", 2)
    state = JournalReader(bench.engine.lake.delta, "bench", "main", "join").load()
    (partition,) = {name for name in state.offsets["foreign"] if name.endswith("/1")}
    last = LastRecord(partition, f"{name}/1", 5, 40, click("w", 9, LATE)["event_id"])
    source, spec = (
        open_source(bench.pipeline.foreign.source),
        bench.pipeline.spec("foreign", int(bench.clock.now * 1e6)),
    )
    resumed = source.resume(last, spec)
    assert resumed
    assert resumed.payload["next"] == 6
    assert source.resume(replace(last, event_id="x"), spec) is None, "another message lies in its place"


@in_full
def test_what_is_in_no_table_is_read_again(joined: Made, topics: Topics) -> None:
    bench = joined(2)
    write_all(topics)
    through(bench, topics)
    hand = Hand(bench)
    rows = hand.rows("foreign", "c2")
    hand.delete("foreign", "c2")
    assert found(verify(bench)) == {"unknown_output": 1, "unread": 1}
    verify(bench, repair=True)
    assert len(hand.rows("foreign", "c2")) == 1
    hand.add("foreign", rows[0])
    assert found(verify(bench)) == {"overread": 1}


@in_full
def test_verification_of_what_retention_took_afterwards(joined: Made, topics: Topics) -> None:
    """Messages that were read are no loss; that they cannot be read again is said, and is no fault."""
    bench = joined(2)
    write_all(topics)
    through(bench, topics)
    topics.forget("foreign", 5, partition=1)
    report = verify(bench)
    assert found(report) == {}
    assert any("retention or compaction" in note for note in report.notes)
    assert bench.rows("quarantine", "reason", "offset") == [("broken-json", 1), ("broken-json", 6), ("tombstone", 2)]


def test_a_topic_that_is_made_again_under_a_running_join(joined: Made, topics: Topics) -> None:
    bench = joined(1, batch={"max_events": 6})
    topics.send("primary", [Q])
    topics.send("foreign", clicks(10))
    assert bench.replica("main").join_once()
    topics.delete("foreign")
    topics.create("foreign", 3)
    topics.send("foreign", clicks(5, 20), partition=2)
    drained(bench)
    once(bench, [*clicks(6), *clicks(5, 20)])
    assert bench.rows("quarantine", "stream", "reason", "offset", "length") == [("foreign", "source-lost", 6, 4)]
    assert any("source-lost" in (text or "") for (text,) in bench.rows("metrics", "problems"))
    assert agrees(bench)
    assert found(verify(bench)) == {}


@in_full
def test_a_planned_batch_whose_topic_is_made_again(
    joined: Made, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch settles with what it lost on record, and takes nothing of the new topic's under the old one's name."""
    bench = joined()
    topics.send("primary", [Q])
    topics.send("foreign", clicks(10))
    stopped(monkeypatch, "planned", lambda: bench.replica("main").join_once())
    topics.delete("foreign")
    topics.create("foreign")
    topics.send("foreign", clicks(10, 50))
    drained(bench)
    once(bench, clicks(10, 50))
    assert bench.rows("quarantine", "stream", "reason", "offset", "length") == [("foreign", "source-lost", 0, 10)]
    assert found(verify(bench)) == {}


@in_full
@pytest.mark.parametrize("local", ["0B", "4MB"])
def test_offsets_that_were_deleted_before_they_were_read(
    joined: Made, topics: Topics, monkeypatch: pytest.MonkeyPatch, local: str
) -> None:
    """Of a planned batch, and of what was not planned yet."""
    bench = joined(batch={"max_events": 10, "driver_bytes": local})
    topics.send("primary", [Q])
    topics.send("foreign", clicks(30))
    stopped(monkeypatch, "planned", lambda: bench.replica("main").join_once())
    topics.forget("foreign", 4)
    assert bench.replica("main").join_once()
    topics.forget("foreign", 20)
    drained(bench)
    once(bench, [*clicks(6, 4), *clicks(10, 20)])
    lost = [("foreign", "source-lost", 0, 4), ("foreign", "source-lost", 10, 10)]
    assert bench.rows("quarantine", "stream", "reason", "offset", "length") == lost
    assert found(verify(bench)) == {}


def test_two_replicas_new_partitions_and_transactions(joined: Made, topics: Topics) -> None:
    """Each replica reads all; partitions come while they run; what was aborted is in no table."""
    bench = joined(1, batch={"max_events": 7})
    topics.send("primary", [Q])
    topics.send("foreign", clicks(10))
    assert bench.replica("main").join_once()
    topics.widen("foreign", 11)
    for number in range(11):
        topics.send("foreign", clicks(2, 100 + 10 * number), partition=number)
    with topics.transaction("foreign", clicks(5, 260), commit=False, partition=3):
        assert bench.replica("east").join_once()
    with topics.transaction("foreign", clicks(3, 250), commit=True, partition=3):
        drained(bench, "east")
    drained(bench)
    drained(bench, "east")
    wanted = [*clicks(10), *clicks(3, 250), *(each for number in range(11) for each in clicks(2, 100 + 10 * number))]
    once(bench, wanted)
    for name in ("main", "east"):
        landed = [row[0] for row in bench.rows("foreign", "event_id", "replica") if row[1] == name]
        assert landed == sorted(each["event_id"] for each in wanted)
    assert agrees(bench)
    assert found(verify(bench)) == {}


@in_full
def test_a_lost_journal_goes_on_after_the_last_record(joined: Made, topics: Topics) -> None:
    bench = joined(2)
    write_all(topics)
    through(bench, topics)
    now = datetime.fromtimestamp(bench.clock.now, UTC)
    with moving_tables(bench.engine.lake.delta, "a test") as folders:
        folders.put_aside("journal", now)
    rebuilt = rebuild_journal(bench.pipeline, bench.engine.lake, now)
    assert rebuilt.resumed == 2
    topics.send("foreign", clicks(2, 30), partition=0)
    drained(bench)
    assert sorted(bench.places()["joined"]) == ["c0", "c1", "c2", "c3", "c30", "c31", "w"]


@in_full
def test_one_topic_for_both_streams(make: Made, topics: Topics) -> None:
    """Records of every kind in one topic: each lands once, broken ones are set aside once, the rest is counted."""
    topics.create("all", 2)
    source = topics.source("all")
    bench = make(
        primary={"source": source, "where": {"type": "query"}}, foreign={"source": source, "where": {"type": "click"}}
    )
    own = [click(f"c{n}", 2 + n, Q, type="click") for n in range(4)]
    topics.send("all", [Q | {"type": "query"}, {"type": "beat"}, own[0], b"{broken", None])
    topics.send("all", [*own[1:], {"no": "type"}, b""], partition=1)
    settled = bench.engine.join_once()
    assert settled
    counted = {name: settled.metrics[name] for name in ("joined", "quarantined", "passed_over")}
    assert counted == {"joined": 4, "quarantined": 3, "passed_over": 2}
    bad = bench.rows("quarantine", "stream", "reason")
    assert bad == [("primary", "broken-json"), ("primary", "empty-value"), ("primary", "tombstone")]
    once(bench, own)
    assert not found(verify(bench))
    Hand(bench).delete("foreign", "c2")
    assert found(verify(bench))["unread"] == 1
    verify(bench, repair=True)
    once(bench, own)
    assert not found(verify(bench))


@pytest.mark.parametrize("local", some(["0B", "4MB"], 2))
def test_ids_of_keys_and_times_of_messages(make: Made, topics: Topics, local: str) -> None:
    """The driver and Spark's tasks read alike what lies beside a value; a message without it goes to quarantine."""
    for stream in ("primary", "foreign"):
        topics.create(stream, retention_ms="-1")  # by the times of the messages, which are old
    beside = {"metadata": ["key", "headers", "timestamp"]}
    fields = {"event_id": "_key", "event_time": "_timestamp"}
    bench = make(
        primary={"source": topics.source("primary", **beside), **fields},
        foreign={
            "source": topics.source("foreign", **beside), **fields,
            "primary_id": "_headers.query", "primary_time": {"lookback": "1h"},
        },
        batch={"driver_bytes": local},
        output={"columns": {"page": {"from": "foreign._headers.page", "type": "STRING"}}},
    )  # fmt: skip
    at = round(bench.clock.now * 1000) - 5000
    topics.send("primary", [{"text": "shoes"}], key=b"q1", timestamp=at)
    for n in range(3):
        headers = [("query", b"q1"), ("page", b"%d" % n)]
        topics.send("foreign", [{"price": n}], key=b"c%d" % n, timestamp=at + n, headers=headers)
    topics.send("foreign", [{"price": 9}, b"{cut"], key=b"\xff", timestamp=at, headers=[("query", b"q1")])
    drained(bench)
    rows = bench.rows("joined", "event_id", "primary_id", "page", "event_time")
    assert [row[:3] for row in rows] == [(f"c{n}", "q1", str(n)) for n in range(3)]
    assert [round(row[3].timestamp() * 1000) for row in rows] == [at, at + 1, at + 2]
    assert {length for (length,) in bench.rows("foreign", "length")} == {len(b'{"price": 0}')}, "of the value alone"
    bad = bench.rows("quarantine", "reason", "raw")
    assert bad == [("broken-json", b"{cut"), ("missing-id", b'{"price": 9}')]
    assert not found(verify(bench))
