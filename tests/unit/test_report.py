"""What a person asks of a pipeline, on tables made by hand: how it stands, and where an event is."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from clickjoin.config import Pipeline
from clickjoin.dispatcher.journal import Journal
from clickjoin.engines.arrow import ArrowTables
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.ids import MICROS, bucket_of
from clickjoin.report.explain import explain
from clickjoin.report.status import replicas, status
from clickjoin.retry.pending import open_rows
from clickjoin.schemas import ALL

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def name(host: str, seconds: int) -> str:
    return f"{host}:1:{int(at(seconds).timestamp()) * MICROS}"


def identity(host: str, seconds: int) -> dict[str, Any]:
    micros = int(at(seconds).timestamp()) * MICROS
    return {"event_id": name(host, seconds), "event_time": at(seconds), "bucket": bucket_of(micros, 3600)}


def pipeline(lake: Path, event_time: str = "embedded") -> Pipeline:
    side = {"source": {"kind": "files", "path": "/x"}, "event_id": "id", "event_time": event_time}
    foreign = {**side, "primary_id": "q", "primary_time": "embedded"}
    return Pipeline.model_validate(
        {"pipeline": "p", "engine": "arrow", "lake": str(lake), "primary": side, "foreign": foreign}
    )


@pytest.fixture
def delta(tmp_path: Path) -> ArrowTables:
    tables = ArrowTables(f"{tmp_path}/p")
    for table in ALL:
        tables.create(table)
    return tables


def waits(host: str, **more: Any) -> dict[str, Any]:
    row = {**identity(host, 0), "replica": "main", "round": 0, "attempt": 1, "first_seen": at(0), "state": "waiting"}
    return row | {"due_at": at(10)} | more


def test_open_pending_is_the_newest_row(delta: ArrowTables) -> None:
    delta.append("pending", [
        waits("a"), waits("a", attempt=2, due_at=at(30)),  # tried again
        waits("b"), waits("b", attempt=2, state="resolved", outcome="joined", due_at=None),
        waits("c", attempt=9), waits("c", attempt=9, state="resolved"), waits("c", round=1, attempt=0),  # redriven
        waits("d"), waits("d"),  # the same event came twice
        waits("e", replica="east"), waits("e", attempt=2, state="resolved"),  # resolved by another replica alone
    ])  # fmt: skip
    found = {(row["event_id"], row["replica"], row["round"], row["attempt"]) for row in open_rows(delta)}
    assert found == {
        (name("a", 0), "main", 0, 2),
        (name("c", 0), "main", 1, 0),
        (name("d", 0), "main", 0, 1),
        (name("e", 0), "east", 0, 1),
    }


def metric(batch: int, sequence: str = "join", replica: str = "main", **more: Any) -> dict[str, Any]:
    row = {"replica": replica, "sequence": sequence, "batch": batch, "settled_at": at(batch), "backlog_events": 0}
    return row | {"backlog_bytes": 0, "joined": 0, "quarantined": 0} | more


def test_status(delta: ArrowTables) -> None:
    planned = [{"replica": r, "sequence": "join", "batch": 1, "state": "planned"} for r in ("main", "east", "new")]
    delta.append("journal", planned)
    problem = {"kind": "missing", "path": "/x", "detail": "no file", "offset": 0, "length": 0}
    delta.append("metrics", [
        metric(2, joined=5, latency_p90=2.5, backlog_events=7, backlog_bytes=70, problems=json.dumps([problem]),
               watermark=at(-70), misfits=json.dumps({"price": 2, "item": 1})),
        metric(1, joined=3, quarantined=1, latency_p90=9.0, backlog_events=9, misfits=json.dumps({"price": 3})),
        metric(3, "retry", joined=1, backlog_events=None, unjoinable=3, absent=2),
        metric(1, replica="east", joined=2),
    ])  # fmt: skip
    delta.append("pending", [waits("a", first_seen=at(-50)), waits("b")])
    delta.append("foreign", [identity("a", 0) | {"shard": 0, "batch": 1}])
    found = status(delta, last=2, now=at(100))
    assert found["rows"] == {"primary": 0, "foreign": 1, "registry": 0, "joined": 0, "unjoinable": 0, "expired": 0,
                             "filtered": 0, "quarantine": 0}  # fmt: skip
    assert (found["pending"], found["oldest_pending_seconds"]) == (2, 150)
    assert sorted(found["replicas"]) == replicas(delta) == ["east", "main", "new"]
    main = found["replicas"]["main"]
    assert [(row["sequence"], row["batch"]) for row in main.pop("last")] == [("join", 2), ("retry", 3)]
    assert main == {
        "batches": 3, "last_batch_seconds_ago": 98, "watermark": at(-70),
        "latency_p90": 2.5, "backlog_events": 7, "backlog_bytes": 70,
        "problems": [problem],
        "totals": {"joined": 9, "repeats": 0, "wasted": 0, "unjoinable": 3, "absent": 2, "expired": 0, "filtered": 0,
                   "quarantined": 1, "passed_over": 0, "conflict_reruns": 0},
        "misfits": {"price": 5, "item": 1},
    }  # fmt: skip
    assert found["replicas"]["east"]["totals"]["joined"] == 2
    assert found["replicas"]["new"]["last_batch_seconds_ago"] is None


def test_status_of_an_empty_lake(delta: ArrowTables) -> None:
    found = status(delta)
    assert (found["pending"], found["oldest_pending_seconds"], found["replicas"]) == (0, None, {})
    assert json.dumps(found)


CLICK = {"shard": 0, "batch": 1, "replica": "main"}


def test_explain_the_whole_way(delta: ArrowTables, tmp_path: Path) -> None:
    click, other = identity("c", 5), identity("d", 5)
    place = {"path": "/logs/c", "offset": 10, "length": 7}
    delta.append("foreign", [click | CLICK | place, other | CLICK])
    delta.append(
        "pending", [click | {"round": 0, "attempt": a, "state": s} for a, s in ((2, "resolved"), (1, "waiting"))]
    )
    delta.append("registry", [click | {"shard": 0, "token": "p/main/retry/1", "outcome": "joined"}])
    delta.append("joined", [click | {"event_date": at(5).date(), "primary_id": "q", "token": "p/main/retry/1"}])
    found = explain(pipeline(tmp_path), delta, name("c", 5))
    assert (found["event_id"], found["state"], found["remedy"]) == (name("c", 5), "joined", "")
    steps = [(step["table"], step.get("attempt")) for step in found["history"]]
    assert steps == [("foreign", None), ("pending", 1), ("pending", 2), ("registry", None), ("joined", None)]
    first = found["history"][0]
    assert (first["path"], first["offset"], first["event_time"]) == ("/logs/c", 10, "2026-01-01T12:00:05+00:00")
    assert json.dumps(found)


@pytest.mark.parametrize(
    ("tables", "state", "remedy"),
    [
        ((), "unknown", "none in table `quarantine` holds it"),
        (("foreign",), "landed", "its batch is not settled yet"),
        (("primary",), "primary", ""),
        (("foreign", "registry"), "claimed", "Claimed, and not published yet"),
        (("foreign", "pending"), "pending", "tried again at due_at"),
        (("foreign", "pending", "registry", "unjoinable"), "unjoinable", "`clickjoin redrive`"),
        (("foreign", "registry", "filtered"), "filtered", ""),
        (("foreign", "expired"), "expired", ""),
    ],
)
@pytest.mark.parametrize("event_time", ["embedded", "a_column"])
def test_states(
    delta: ArrowTables, tmp_path: Path, tables: tuple[str, ...], state: str, remedy: str, event_time: str
) -> None:
    for table in tables:
        row = identity("c", 5) | ({"state": "waiting", "round": 0, "attempt": 1} if table == "pending" else {})
        delta.append(table, [row | ({"shard": 1} if table == "registry" else {})])
    found = explain(pipeline(tmp_path, event_time), delta, name("c", 5))
    assert found["state"] == state
    assert remedy in found["remedy"]
    assert bool(found["remedy"]) == bool(remedy)
    assert [step["table"] for step in found["history"]].count("foreign") == tables.count("foreign")


@pytest.mark.parametrize(("state", "gone"), [("registry", "gone from `joined`"), ("foreign", "in no table")])
def test_explain_says_that_a_settled_row_is_gone(delta: ArrowTables, tmp_path: Path, state: str, gone: str) -> None:
    journal = Journal(delta, "p", "main", "join")
    for number in (1, 2):
        journal.plan(BatchPlan("p", "main", "join", number, 0, snapshot=True), NOON)
        if number == 1:
            journal.settle(number, {}, NOON)
    for host, batch in (("c", 1), ("d", 2)):
        delta.append("foreign", [identity(host, 5) | CLICK | {"batch": batch}])
        if state == "registry":
            delta.append("registry", [identity(host, 5) | {"shard": 1, "token": f"p/main/join/{batch}"}])
    said = f"Its row is {gone}: `clickjoin verify --repair --from 2026-01-01 --to 2026-01-02`"
    assert explain(pipeline(tmp_path), delta, name("c", 5))["remedy"] == said
    assert "under way, or must be run again" in explain(pipeline(tmp_path), delta, name("d", 5))["remedy"]


def test_explain_looks_into_quarantine(delta: ArrowTables, tmp_path: Path) -> None:
    def bad(raw: bytes | None, batch: int, offset: int = 0) -> dict[str, Any]:
        return {"stream": "foreign", "reason": "bad-time", "raw": raw, "batch": batch, "replica": "main"} | {
            "offset": offset, "length": len(raw or b""), "path": "/logs/c", "detail": "`ts` is missing"
        }  # fmt: skip

    long = b'{"event_id": "many:1:1", "' + b"x" * 9_000 + b"\xff\n"
    rows = [bad(b'{"event_id": "odd:1:1"\n', 1, 5), bad(None, 1), bad(b"[]\n", 2), *[bad(long, 3)] * 30]
    schema = pa.schema(delta.open("quarantine").schema().to_arrow())
    write_deltalake(delta.path("quarantine"), pa.Table.from_pylist(rows, schema=schema), mode="append")
    found = explain(pipeline(tmp_path), delta, "odd:1:1")
    assert (found["state"], len(found["history"])) == ("quarantined", 1)
    assert found["history"][0]["raw"] == '{"event_id": "odd:1:1"'
    assert (found["history"][0]["offset"], found["history"][0]["reason"]) == (5, "bad-time")
    many = explain(pipeline(tmp_path), delta, "many:1:1")["history"]
    assert len(many) == 10
    assert many[0]["raw"].endswith(f"xxx … ({len(long):,} bytes)")
    assert json.dumps(found)
    for other in ("none:1:1", "odd:1", "dd:1:1"):  # an id is looked for as a whole
        assert explain(pipeline(tmp_path), delta, other)["state"] == "unknown"


def test_explain_looks_for_each_value_of_an_id_of_several_columns(delta: ArrowTables, tmp_path: Path) -> None:
    rows = [
        {"stream": "foreign", "reason": "bad-time", "raw": raw, "batch": 1, "replica": "main", "offset": at,
         "length": len(raw), "path": "/logs/c", "detail": "`ts` is missing"}
        for at, raw in enumerate((b'{"host": "a:b", "pid": 17, "seq": 4}', b'{"host": "c", "pid": 170, "seq": 4}'))
    ]  # fmt: skip
    delta.append("quarantine", rows)
    several = pipeline(tmp_path)
    several = several.model_copy(
        update={"foreign": several.foreign.model_copy(update={"event_id": ("host", "pid", "seq")})}
    )
    found = explain(several, delta, "a%3Ab:17:4")
    assert (found["state"], [step["offset"] for step in found["history"]]) == ("quarantined", [0])
    for other in ("a%3Ab:17:5", "c:17:4", "a%3Ab:17", "a:b:17:4"):
        assert explain(several, delta, other)["state"] == "unknown"
    assert explain(pipeline(tmp_path), delta, "a%3Ab:17:4")["state"] == "unknown"


def test_explain_says_that_an_event_is_forgotten(delta: ArrowTables, tmp_path: Path) -> None:
    delta.append("foreign", [identity("c", 5) | CLICK | {"payload": "{}"}])
    delta.append("forgotten", [identity("c", 5) | {"stream": "foreign", "request": "GDPR-1", "at": at(60)}])
    found = explain(pipeline(tmp_path), delta, name("c", 5))
    assert (found["state"], "Forgotten on request" in found["remedy"]) == ("forgotten", True)
    assert (found["history"][-1]["request"], found["history"][-1]["at"]) == ("GDPR-1", at(60).isoformat())


@pytest.mark.parametrize("event_id", ["", "what", "a:1:" + "9" * 18, "'; DROP", "a:1:0", "ü" * 99])
def test_ids_that_never_were(delta: ArrowTables, tmp_path: Path, event_id: str) -> None:
    assert explain(pipeline(tmp_path), delta, event_id)["state"] == "unknown"


def test_uuid_beyond_all_time(delta: ArrowTables, tmp_path: Path) -> None:
    found = explain(pipeline(tmp_path, "uuid7"), delta, "ffffffff-ffff-7000-8000-000000000000")
    assert found["state"] == "unknown"


def test_one_id_at_two_times(delta: ArrowTables, tmp_path: Path) -> None:
    for batch, seconds in ((1, 5), (2, 9000)):
        delta.append("foreign", [identity("c", seconds) | CLICK | {"event_id": "same", "batch": batch}])
    found = explain(pipeline(tmp_path, "a_column"), delta, "same")
    assert [step["event_time"] for step in found["history"]] == [
        "2026-01-01T12:00:05+00:00",
        "2026-01-01T14:30:00+00:00",
    ]
