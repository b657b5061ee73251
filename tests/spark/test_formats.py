"""Logs as they are, through join, retry and verification: nested ids, ids of columns, odd times, Parquet, CSV."""

from __future__ import annotations

import bz2
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clickjoin.jobs.run import drain as drained
from tests.sampled import in_full, some
from tests.spark.bench import NOON, Bench, click, query
from tests.spark.hand import found, verify

START = datetime.fromtimestamp(NOON, UTC)


def settled(bench: Bench) -> dict[str, str]:
    """Where each click is, after everything that is there was joined and retried."""
    bench.rest(60)
    while bench.engine.join_once():
        pass
    bench.clock.now += 30
    while bench.engine.retry_once():
        pass
    tables = ("joined", "filtered", "unjoinable", "expired")
    places = {name: table for table in tables for name in bench.engine.lake.delta.read(table)["event_id"].to_pylist()}
    waiting = bench.engine.lake.delta.read("pending", [("state", "=", "waiting")])["event_id"].to_pylist()
    return places | {name: "pending" for name in waiting if name not in places}


def payloads(bench: Bench) -> dict[str, Any]:
    rows = bench.engine.lake.delta.read("joined").to_pylist()
    return {row["event_id"]: (json.loads(row["foreign_record"]), json.loads(row["primary_record"])) for row in rows}


@pytest.mark.parametrize("driver_bytes", some(["0B", "16MB"], 2))
def test_parquet_of_columns_joins_nested_packed_json(make: Any, driver_bytes: str) -> None:
    """Queries are rows of Parquet whose id is three columns; clicks name it inside of objects; one query comes late."""
    bench = make(
        batch={"driver_bytes": driver_bytes},
        primary={
            "source": {"kind": "files", "path": "./primary/*.parquet"},
            "event_id": ["host", "pid", "seq"],
            "event_time": "at",
        },
        foreign={
            "source": {"kind": "files", "path": "./foreign/*"},
            "event_id": "click.ids[1]",
            "event_time": "click.`t.s`",
            "primary_id": ["query.host", "query.pid", "query.seq"],
            "primary_time": {"lookback": "1h"},
        },
    )
    rows = [{"host": f"h:{n}", "pid": n % 3, "seq": n, "at": START + timedelta(seconds=n)} for n in range(12)]
    clicks = [
        {
            "click": {"ids": ["v1", f"c{n}"], "t.s": (START + timedelta(seconds=20 + n)).isoformat()},
            "query": {"host": f"h:{n}", "pid": n % 3, "seq": n},
        }
        for n in range(13)
    ]
    clicks.append({"click": {"ids": ["no second"]}, "query": {}})
    write_parquet(bench.folder / "primary" / "a.parquet", rows[:11])
    text = "".join(json.dumps(click) + "\n" for click in clicks).encode()
    (bench.folder / "foreign" / "a.jsonl.bz2").write_bytes(bz2.compress(text))
    assert settled(bench) == {f"c{n}": "joined" if n < 11 else "pending" for n in range(13)}
    write_parquet(bench.folder / "primary" / "b.parquet", rows[11:])
    assert settled(bench) == {f"c{n}": "joined" if n < 12 else "unjoinable" for n in range(13)}
    joined = payloads(bench)
    assert [joined[f"c{n}"][0] for n in range(12)] == clicks[:12]
    assert [joined[f"c{n}"][1]["seq"] for n in range(12)] == list(range(12))
    assert joined["c3"][1] == {"host": "h:3", "pid": 0, "seq": 3, "at": "2026-03-01T12:00:03Z"}
    ids = {row["event_id"]: row["primary_id"] for row in bench.engine.lake.delta.read("joined").to_pylist()}
    assert ids["c3"] == "h%3A3:0:3"
    (bad,) = bench.engine.lake.delta.read("quarantine").to_pylist()
    assert (bad["reason"], json.loads(bad["raw"])) == ("missing-id", clicks[-1])
    report = verify(bench)
    assert (found(report), report.ok) == ({}, True)


def test_records_in_arrays(make: Any) -> None:
    """Each element is a click, joined once; verification finds all bytes of the file in rows."""
    bench = make(foreign={"source": {"kind": "files", "path": "./foreign/*", "records": "Records"}})
    asked = query("q")
    bench.queries(asked)
    clicks = [click(f"c{n}", n, asked) for n in range(30)]
    lines = [{"Records": [*clicks[:9], 7], "n": 1}, {"Records": clicks[9:20]}, *clicks[20:25], {"Records": clicks[24:]}]
    bench.clicks(*lines)
    assert bench.join() == {"primary_in": 1, "events_in": 31, "joined": 30, "repeats": 1, "quarantined": 1}
    report = verify(bench)
    assert (found(report), report.ok) == ({}, True)


def test_a_file_that_ends_early_is_a_problem(make: Any) -> None:
    """What it lacks is in no count, so a drain must not end as if all were well."""
    bench = make(foreign={"source": {"kind": "files", "path": "./foreign/*"}, "event_id": "event_id",
                          "event_time": "embedded", "primary_id": "query_id", "primary_time": "embedded"})  # fmt: skip
    asked = query("q")
    bench.queries(asked)
    lines = "".join(json.dumps(click(f"c{n}", n, asked)) + "\n" for n in range(30)).encode()
    (bench.folder / "foreign" / "c.jsonl.bz2").write_bytes(bz2.compress(lines) + b"what is no bz2")
    (bench.folder / "foreign" / "d.jsonl.bz2").write_bytes(bz2.compress(lines)[:-9])
    bench.rest(60)
    result = drained(bench.spark, bench.pipeline, "main", lambda _: None, check=True)
    assert [(problem["kind"], Path(problem["path"]).name) for problem in result["problems"]] == [
        ("broken-file", "c.jsonl.bz2")
    ]
    assert "d.jsonl.bz2: " in result["problems"][0]["detail"]
    assert (result["joined"], result["ok"], result["accounts"]["agree"]) == (30, False, True)


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path)


@in_full
def test_csv_with_odd_dates_and_a_lost_row_that_is_found(make: Any) -> None:
    """CSV of semicolons with local times; without a header on one side; verification repairs what was deleted."""
    form = {"column": "when", "format": "%d.%m.%Y %H:%M:%S", "zone": "Europe/Berlin"}
    bench = make(
        primary={
            "source": {"kind": "files", "path": "./primary/*", "separator": ";", "columns": ["id", "when", "price"],
                       "format": "csv"},
            "event_id": "id",
            "event_time": form,
        },
        foreign={
            "source": {"kind": "files", "path": "./foreign/*.csv", "separator": "\t"},
            "event_id": "id",
            "event_time": form,
            "primary_id": "query",
            "primary_time": {**form, "column": "shown"},
        },
    )  # fmt: skip

    def local(seconds: int) -> str:
        return (START + timedelta(hours=1, seconds=seconds)).strftime("%d.%m.%Y %H:%M:%S")

    queries = "".join(f"q{n};{local(n)};{n}.50\n" for n in range(5))
    clicks = "id\tquery\tshown\twhen\n" + "".join(f"{100 + n}\tq{n}\t{local(n)}\t{local(9 + n)}\n" for n in range(5))
    clicks += f"105\tq0\t{local(1)}\t{local(20)}\n106\tq0\tnever\t{local(20)}\n"
    (bench.folder / "primary" / "q.log").write_text(queries)
    (bench.folder / "foreign" / "c.csv").write_text(clicks)
    assert settled(bench) == {**{f"{100 + n}": "joined" for n in range(5)}, "105": "pending"}
    (row,) = (row for row in bench.engine.lake.delta.read("joined").to_pylist() if row["event_id"] == "102")
    assert (row["event_time"], row["primary_time"]) == (START + timedelta(seconds=11), START + timedelta(seconds=2))
    assert json.loads(row["primary_record"]) == {"id": "q2", "when": local(2), "price": "2.50"}
    (bad,) = bench.engine.lake.delta.read("quarantine").to_pylist()
    assert (bad["reason"], bad["detail"].endswith("(got 'never')")) == ("bad-primary-id", True)
    report = verify(bench)
    assert (found(report), report.ok) == ({}, True)
