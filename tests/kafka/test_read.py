"""Reading topics of a real broker: what was sent is counted by the test itself, message by message."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from clickjoin.config import Kafka
from clickjoin.kernel.kafka import reading
from clickjoin.model.errors import SourceError, SourceMoved
from clickjoin.model.ids import RecordSpec
from clickjoin.model.split import Budget, SourceOffset, SourcePlan
from clickjoin.sources.kafka.source import KafkaSource
from clickjoin.sources.kafka.state import Range
from stack.kafka_broker import USER, Broker
from tests.kafka.certificate import PUBLIC
from tests.kafka.topics import Topics
from tests.sampled import in_full

NOON = 1_772_366_400_000_000
SPEC = RecordSpec(("event_id",), "embedded", (), None, 0, 1 << 60, 1 << 20)
MUCH = Budget(10**9, 10**12)


def event(n: int) -> dict[str, Any]:
    return {"event_id": f"h:1:{NOON + n}"}


class Reader:
    """A source and how far it has been planned, as the journal would say."""

    def __init__(self, topics: Topics, short: str, group: str = "", **more: Any) -> None:
        self.source = KafkaSource(Kafka.model_validate(topics.source(short, **more)), group=group)
        self.offsets: dict[str, SourceOffset] = {}

    def plan(self, budget: Budget = MUCH) -> SourcePlan:
        plan = self.source.plan(self.offsets, budget)
        self.offsets |= {offset.partition: offset for offset in plan.offsets}
        return plan

    def ranges(self, plan: SourcePlan) -> list[tuple[int, int, int]]:
        return [(one.place.number, one.start, one.end) for one in map(Range.of, [*plan.splits])]

    def read(self, plan: SourcePlan) -> pa.Table:
        return self.source.read_here(plan.splits, SPEC)

    def all(self, budget: Budget = MUCH) -> pa.Table:
        plans = []
        while (plan := self.plan(budget)).splits:
            plans.append(self.read(plan))
        return pa.concat_tables(plans)


def offsets(rows: pa.Table, reason: str | None = None) -> list[int]:
    """Offsets of rows with a reason (None: of good ones), sorted."""
    return sorted(row["offset"] for row in rows.to_pylist() if row["reason"] == reason)


VALUES: Sequence[tuple[Any, str | None]] = [
    (event(1), None),
    (None, "tombstone"),
    (b"", "empty-value"),
    (b" \n ", "empty-value"),
    (b"{broken", "broken-json"),
    (b"null", "not-an-object"),
    (b"[1]", "not-an-object"),
    (b'{"event_id": "h:1:%d"} {"event_id": "h:1:%d"}' % (NOON, NOON), "broken-json"),
    (b'{\n  "event_id":\r\n "h:1:%d"\n}' % NOON, None),
    (b'{"event_id": "h\n:1:%d"}' % NOON, "broken-json"),
    (b'{"event_id": "\xff"}', "invalid-utf8"),
    (b'{"event_id": "h:1:%d", "x": "%b"}' % (NOON, b"y" * 300_000), None),
    (b'{"event_id": "h:1:%d", "x": "%b"}' % (NOON, b"y" * 500_000), "too-long"),
    (b"{}", "missing-id"),
    (event(2), None),
]


@pytest.mark.parametrize("budget", [MUCH, Budget(1, 10**9), Budget(4, 10**9)], ids=["whole", "one", "four"])
def test_every_message_is_in_one_row_whole(topics: Topics, budget: Budget) -> None:
    topics.create("c")
    topics.send("c", [value for value, _ in VALUES], key="k", headers=[("trace", b"ab\xff"), ("none", None)])
    reader = Reader(topics, "c")
    rows = []
    while (plan := reader.plan(budget)).splits:
        found = reader.source.read_here(plan.splits, replace(SPEC, max_record=400_000))
        assert found.num_rows == sum(split.events for split in plan.splits)
        rows += found.to_pylist()
    assert [(row["offset"], row["reason"]) for row in sorted(rows, key=lambda row: row["offset"])] == [
        (at, reason) for at, (_, reason) in enumerate(VALUES)
    ]
    for row in rows:
        value = VALUES[row["offset"]][0]
        sent = json.dumps(value).encode() if isinstance(value, dict) else value
        assert row["length"] == len(sent or b"")
        assert row["path"] == f"kafka:{topics.name('c')}/0"
        if row["reason"] is None:
            assert json.loads(row["payload"]) == json.loads(sent)
        else:
            assert row["raw"] == sent
            rest = json.loads(row["detail"].rpartition("; message ")[2])
            assert rest["key"] == "k"
            assert rest["headers"] == [["trace", "ab\\xff"], ["none", None]]
            assert rest["timestamp"] > 1.7e12


def test_messages_of_csv(topics: Topics) -> None:
    topics.create("c")
    values = [
        b"h:1:%d;a" % NOON,
        b'h:1:%d;"x\ny"' % NOON,
        b"h:1:%d" % NOON,
        b'h:1:%d;"' % NOON,
        b"h:1:%d;b\r\n" % NOON,
        None,
    ]
    topics.send("c", values)
    rows = Reader(topics, "c", format="csv", separator=";", columns=["event_id", "text"]).all()
    assert (offsets(rows), offsets(rows, "bad-csv"), offsets(rows, "tombstone")) == ([0, 1, 4], [2, 3], [5])
    texts = {row["offset"]: json.loads(row["payload"])["text"] for row in rows.to_pylist() if row["payload"]}
    assert texts == {0: "a", 1: "x\ny", 4: "b"}


def test_a_topic_that_was_made_again_gives_nothing_under_the_old_name(topics: Topics) -> None:
    topics.create("c")
    topics.send("c", map(event, range(10)))
    reader = Reader(topics, "c")
    plan = reader.plan(Budget(6, 10**9))
    assert reader.ranges(plan) == [(0, 0, 6)]
    before = reader.source.chunks(plan.splits)
    topics.delete("c")
    assert [problem.kind for problem in reader.plan().problems] == ["missing"]
    with pytest.raises(SourceError, match="no such topic"):
        reader.read(plan)
    topics.create("c")
    topics.send("c", map(event, range(100, 120)))
    # Planned before, located before, and read now: the new topic has these offsets too.
    with pytest.raises(SourceMoved, match="made again"):
        reader.source.read_chunks(before, SPEC)
    lost = reader.read(plan).to_pylist()
    assert [(row["reason"], row["offset"], row["length"]) for row in lost] == [("source-lost", 0, 6)]
    after = reader.plan()
    assert sorted(reader.ranges(after)) == [(0, 0, 20), (0, 6, 10)]
    rows = reader.read(after)
    assert (offsets(rows), offsets(rows, "source-lost")) == ([*range(20)], [6])
    assert all(f"h:1:{NOON + 100 + row['offset']}" == row["event_id"] for row in rows.to_pylist() if not row["reason"])


def test_a_topic_that_is_made_again_while_it_is_read(topics: Topics) -> None:
    """The check after the read finds it: nothing of such a read is used."""
    topics.create("c")
    topics.send("c", map(event, range(10)))
    reader = Reader(topics, "c")
    chunks = reader.source.chunks(reader.plan().splits)
    batches = reading.read_chunks(chunks, SPEC, reader.source._connection)
    assert next(batches).num_rows == 10
    topics.delete("c")
    topics.create("c")
    with pytest.raises(SourceMoved, match="made again"):
        list(batches)


def test_deleted_offsets_are_loud_wherever_they_are_noticed(topics: Topics) -> None:
    topics.create("c")
    topics.send("c", map(event, range(100)))
    reader = Reader(topics, "c")
    first = reader.plan(Budget(40, 10**9))
    there = reader.source.chunks(first.splits)
    topics.forget("c", 30)
    late = reader.source.read_chunks(there, SPEC)  # noticed by the read itself
    for rows in (late, reader.read(first)):
        assert offsets(rows) == [*range(30, 40)]
        gone = [row for row in rows.to_pylist() if row["reason"]]
        assert [(row["reason"], row["offset"], row["length"], row["raw"]) for row in gone] == [
            ("source-lost", 0, 30, None)
        ]
    assert set(reader.source.lost(first.splits)) == {first.splits[0].partition}
    topics.forget("c", 60)
    plan = reader.plan()  # noticed by the plan
    assert [(one.kind, one.offset, one.length) for one in plan.problems] == [("source-lost", 40, 20)]
    rows = reader.read(plan)
    assert (offsets(rows), offsets(rows, "source-lost")) == ([*range(60, 100)], [40])
    assert not reader.plan().splits


def test_transactions_leave_gaps_and_an_open_one_is_the_end(topics: Topics) -> None:
    topics.create("c")
    with topics.transaction("c", map(event, range(5)), commit=True):
        pass
    with topics.transaction("c", map(event, range(100, 105)), commit=False):
        pass
    reader = Reader(topics, "c")
    with topics.transaction("c", map(event, range(5, 10)), commit=True):
        plan = reader.plan()
        assert reader.ranges(plan) == [(0, 0, 12)]  # five, a mark, five that were aborted, a mark
        rows = reader.read(plan)
        assert offsets(rows) == [*range(5)]
        assert not reader.plan().splits
        topics.send("c", [event(50)])  # behind the open one
        assert not reader.plan().splits
    for budget in (MUCH, Budget(1, 10**9)):
        again = Reader(topics, "c")
        rows = again.all(budget)
        assert offsets(rows) == [*range(5), *range(12, 18)]
        assert offsets(rows) == [row["offset"] for row in rows.sort_by("offset").to_pylist()]
    assert offsets(reader.all()) == [*range(12, 18)]


def test_only_marks_are_left(topics: Topics) -> None:
    """A range without any message ends by its position."""
    topics.create("c")
    for _ in range(3):
        with topics.transaction("c", [event(1)], commit=False):
            pass
    reader = Reader(topics, "c")
    plan = reader.plan()
    assert reader.ranges(plan) == [(0, 0, 6)]
    begun = time.monotonic()
    assert reader.read(plan).num_rows == 0
    assert time.monotonic() - begun < 10
    assert not reader.plan().splits


def test_compaction_is_no_loss(topics: Topics) -> None:
    topics.create(
        "c", cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01", max_compaction_lag_ms="100"
    )
    for n in range(12):
        topics.send("c", [event(n)], key=f"k{n % 3}")
    topics.send("c", [None], key="k0")
    reader = Reader(topics, "c")
    plan = reader.plan()
    assert reader.ranges(plan) == [(0, 0, 13)]
    until = time.monotonic() + 40
    while len(there := reader.read(plan)) > 6:
        assert time.monotonic() < until, "the broker compacts nothing"
        time.sleep(0.3)
        topics.send("c", [event(99)], key="roll")
    assert not reader.source.lost(plan.splits)
    assert {10, 11} <= set(offsets(there))
    assert set(offsets(there, "source-lost")) == set()


def test_new_partitions_are_found_and_read_from_their_beginning(topics: Topics) -> None:
    topics.create("c", 2)
    topics.send("c", map(event, range(10)), partition=0)
    reader = Reader(topics, "c", **{"from": "latest"})
    assert not reader.plan().splits  # what was there before the first look is not asked for
    assert len(reader.offsets) == 2
    topics.widen("c", 12)
    for number in range(12):
        topics.send("c", [event(number)], partition=number)
    plan = reader.plan()
    assert reader.ranges(plan) == [(0, 10, 11), *((number, 0, 1) for number in range(1, 12))]
    assert reader.read(plan).num_rows == 12


def test_from_a_time(topics: Topics) -> None:
    topics.create("c", 2, retention_ms="-1")  # by the times of the messages, which are old
    topics.send("c", map(event, range(5)), timestamp=1_700_000_000_000)
    topics.send("c", map(event, range(5, 8)), timestamp=1_700_000_060_000)
    reader = Reader(topics, "c", **{"from": datetime.fromtimestamp(1_700_000_030, UTC)})
    assert reader.ranges(reader.plan()) == [(0, 5, 8)]
    topics.send("c", [event(9)], partition=1)
    assert reader.ranges(reader.plan()) == [(1, 0, 1)]


def test_offsets_are_committed_to_a_group_once_they_are_settled(topics: Topics) -> None:
    topics.create("c", 2)
    topics.send("c", map(event, range(7)), partition=1)
    reader = Reader(topics, "c", group="bench-main")
    assert reader.plan().splits
    group = "clickjoin-bench-main"
    assert topics.committed(group, "c") == {}  # planned, and not settled
    reader.plan()
    until = time.monotonic() + 20
    while (found := topics.committed(group, "c")) != {0: 0, 1: 7}:
        assert time.monotonic() < until, found
        time.sleep(0.05)
    looker = Reader(topics, "c")
    looker.plan()
    looker.plan()
    assert topics.committed("clickjoin", "c") == {}


@in_full
def test_a_broker_that_is_killed_while_it_is_read(broker: Broker, topics: Topics) -> None:
    """Who looks hears that nobody answers; a read goes on by itself when the broker is back, and lacks nothing."""
    topics.create("c", 3)
    for number in range(3):
        topics.send("c", map(event, range(2000)), partition=number)
    reader = Reader(topics, "c")
    plan = reader.plan()
    chunks = reader.source.chunks(plan.splits)
    broker.kill()
    back = threading.Timer(1.0, broker.start)
    try:
        looked = KafkaSource(Kafka.model_validate(topics.source("c")), keep=False).plan({}, MUCH)
        assert [problem.kind for problem in looked.problems] == ["unreadable"]
    finally:
        back.start()
    rows = reader.source.read_chunks(chunks, SPEC)  # begun while there is no broker
    back.join()
    found = [
        (row["source_partition"], row["offset"]) for row in rows.select(["source_partition", "offset"]).to_pylist()
    ]
    assert len(found) == len(set(found)) == 6000


def test_a_password_from_the_environment(broker: Broker, topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    """The right one reads; a wrong one is named as refused, and shown nowhere."""
    topics.create("c")
    topics.send("c", map(event, range(3)))
    options = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": USER}
    secure = topics.source("c", servers=broker.secure, options=options)
    monkeypatch.setenv("CLICKJOIN_KAFKA_SASL_PASSWORD", broker.password)
    reader = Reader(topics, "c", servers=broker.secure, options=options)
    assert reader.all().num_rows == 3
    assert broker.password not in repr(reader.source._link)
    monkeypatch.setenv("CLICKJOIN_KAFKA_SASL_PASSWORD", "not-the-one")
    (problem,) = KafkaSource(Kafka.model_validate(secure), keep=False).plan({}, MUCH).problems
    assert problem.kind == "unreadable"
    assert "uthentication" in problem.detail
    assert "not-the-one" not in problem.detail


def test_tls(broker: Broker, topics: Topics) -> None:
    """Read where the broker's certificate is trusted; where it is not, that is what is said."""
    topics.create("c")
    topics.send("c", map(event, range(3)))
    options = {"security.protocol": "SSL"}
    trusted = options | {"ssl.ca.location": str(broker.folder / PUBLIC)}
    assert Reader(topics, "c", servers=broker.tls, options=trusted).all().num_rows == 3
    doubted = topics.source("c", servers=broker.tls, options=options)
    (problem,) = KafkaSource(Kafka.model_validate(doubted), keep=False).plan({}, MUCH).problems
    assert problem.kind == "unreadable"
    assert "certificate" in problem.detail


def test_fields_whose_text_is_json(topics: Topics) -> None:
    """As Debezium writes documents; text that is none is the message's own, byte for byte."""
    topics.create("c")
    after = [{"after": json.dumps(event(1), indent=1)}, {"after": "{cut"}, {"after": None}, {"after": event(2)}]
    several = json.dumps({"after": json.dumps(event(3))}, indent=2).encode()
    topics.send("c", [*after, several])
    reader = Reader(topics, "c", json="after")
    spec = replace(SPEC, event_id=("after.event_id",), texts=(("after",),))
    rows = reader.source.read_here(reader.plan().splits, spec)
    assert (offsets(rows), offsets(rows, "broken-json"), offsets(rows, "missing-id")) == ([0, 3, 4], [1], [2])
    found = {row["offset"]: row for row in rows.to_pylist()}
    assert found[1]["raw"] == json.dumps(after[1]).encode()
    assert json.loads(found[0]["payload"]) == {"after": event(1)}
    assert found[4]["length"] == len(several)
