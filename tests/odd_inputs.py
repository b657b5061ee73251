"""Logs that are odd in one way each, and what must become of them: the same on each engine and store."""

from __future__ import annotations

import bz2
import gzip
import io
import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ENGINES = ("arrow", "spark")
COUNT = 6
Place = Callable[[str, str], dict[str, Any]]  # the source of a stream, given a pattern of files' names


def at(number: int, **more: int) -> datetime:
    return NOON + timedelta(seconds=60 + number, **more)


def iso(number: int) -> str:
    return at(number).isoformat()


def german(number: int) -> str:
    return at(number, hours=1).strftime("%d.%m.%Y %H:%M:%S")  # of Berlin, in March


def click(number: int, **more: Any) -> dict[str, Any]:
    return {"cid": str(500 + number), "qid": str(100 + number), "ts": iso(number), **more}


def query(number: int, **more: Any) -> dict[str, Any]:
    return {"id": str(100 + number), "ts": NOON.isoformat(), **more}


def line(record: Any) -> bytes:
    return record if isinstance(record, bytes) else json.dumps(record).encode()


def lines(*records: Any, end: bytes = b"\n") -> bytes:
    return b"".join(line(record) + end for record in records)


QUERIES = [query(number) for number in range(COUNT)]
CLICKS = [click(number) for number in range(COUNT)]
ALL = tuple(str(500 + number) for number in range(COUNT))
BERLIN = {"column": "ts", "format": "%d.%m.%Y %H:%M:%S", "zone": "Europe/Berlin"}
ROWS = [f"{500 + n};{100 + n};{german(n)}".encode() for n in range(COUNT)]
CSV = {"format": "csv", "separator": ";"}
NAMED = CSV | {"columns": ["cid", "qid", "ts"]}


class Kind(NamedTuple):
    """`files` of the foreign log by name, and its `messages` where a topic can hold it.

    `source`, `foreign`: what the pipeline's file says of it; `bad`: what goes to quarantine, by reason (None: some);
    `shared`: the log is that of the primary stream too, under these conditions.
    """

    name: str
    files: Mapping[str, bytes]
    messages: tuple[bytes, ...] = ()
    source: Mapping[str, Any] = {}
    foreign: Mapping[str, Any] = {}
    bad: Mapping[str, int] | None = {}
    joined: tuple[str, ...] = ALL
    glob: str = "*"
    output: Mapping[str, Any] = {}
    shared: Mapping[str, Any] = {}

    def __str__(self) -> str:
        return self.name.replace(" ", "-")

    def fields(self, engine: str, place: Place) -> dict[str, Any]:
        """What differs from the usual pipeline's file."""
        names = {"event_id": "cid", "event_time": "ts", "primary_id": "qid", "primary_time": {"lookback": "1h"}}
        foreign = names | {"source": place("foreign", self.glob) | dict(self.source)} | dict(self.foreign)
        primary = {"source": place("primary", "*"), "event_id": "id", "event_time": "ts"}
        if self.shared:
            primary |= {"source": foreign["source"], "where": self.shared}
        return {"engine": engine, "primary": primary, "foreign": foreign} | (
            {"output": self.output} if self.output else {}
        )


def of_lines(name: str, *records: Any, **more: Any) -> Kind:
    """A kind that is lines of a file, or messages."""
    return Kind(name, {"a.jsonl": lines(*records)}, tuple(map(line, records)), **more)


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


def parquet(columns: Mapping[str, Any]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), out)
    return out.getvalue()


def local(number: int) -> datetime:
    return at(number, hours=1).replace(tzinfo=None)


def _parquet_columns() -> dict[str, Any]:
    return {
        "cid": pa.array([Decimal(500 + n) for n in range(COUNT)], pa.decimal128(12, 2)),
        "qid": pa.array([float(100 + n) for n in range(COUNT)]),
        "ts": pa.array([local(n) for n in range(COUNT)], pa.timestamp("us")),
    }


def times() -> list[Any]:
    zone = timezone(timedelta(hours=-5))
    return [iso(0), f"{at(1).timestamp():.9e}", at(2).strftime("%Y-%m-%d %H:%M:%S UTC"), german(3),
            at(4).astimezone(zone).isoformat(), int(at(5).timestamp() * 1000)]  # fmt: skip


TEXTS = [{"Type": "Notification", "Message": json.dumps(one)} for one in CLICKS]
BROKEN = [
    b'{"cid": "600", "qid": "100"', b"[1]", b'{"cid": "\xff", "qid": "1"}', b'{"cid": "6\x0000"}',
    json.dumps(click(0, cid=None)).encode(), json.dumps(click(0, cid=" ")).encode(),
    json.dumps(click(0, cid=1.5)).encode(), b'{"cid": "1", "cid": "2", "qid": "1", "ts": 1}',
    json.dumps(click(0, cid="601", qid="")).encode(), json.dumps(click(0, cid="602", ts="soon")).encode(),
]  # fmt: skip
REASONS = {"broken-json": 2, "not-an-object": 1, "invalid-utf8": 1, "nul-byte": 1, "missing-id": 2, "wrong-type": 1,
           "bad-primary-id": 1, "bad-time": 1}  # fmt: skip
W3C = [b"#Version: 1.0", b"#Fields: date time cid qid"] + [
    b"%s\t%d\t%d" % (at(n).strftime("%Y-%m-%d\t%H:%M:%S").encode(), 500 + n, 100 + n) for n in range(COUNT)
]
EVENTS = [query(n, kind="shown") for n in range(COUNT)] + [click(n, kind="tap") for n in range(COUNT)] + [{"kind": "x"}]
NESTED = [{"c": {"ids": ["", f"{500 + n}"]}, "q": {"a": ["x", 100 + n]}, "ts": iso(n)} for n in range(COUNT)]
FLOATS: list[Any] = [click(n, cid=500.0 + n, qid=qid) for n, qid in enumerate((100, 101.0, "102", 103.0, 104, 105.0))]
FLOATS += [b'{"cid": 5.5e2, "qid": 1e2, "ts": %d}' % at(9).timestamp()]
HEADER = b"cid;qid;ts"

KINDS = (
    Kind("crlf", {"a.jsonl": b"\xef\xbb\xbf" + lines(*CLICKS[:3], b"", *CLICKS[3:], b"  ", end=b"\r\n")}),
    Kind("gzip", {"a.jsonl.gz": gzip.compress(lines(*CLICKS[:4])) + gzip.compress(lines(*CLICKS[4:]))}),
    Kind("zstd", {"a.jsonl.zst": zstd(lines(*CLICKS))}),
    Kind("bz2", {"a.jsonl.bz2": bz2.compress(lines(*CLICKS))}),
    Kind("parquet", {"a.parquet": parquet(_parquet_columns())}, glob="*.parquet",
         foreign={"event_time": {"column": "ts", "zone": "Europe/Berlin"}}),
    Kind("csv", {"a.csv": b"\xef\xbb\xbf" + lines(b"", HEADER, *ROWS, end=b"\r\n")}, glob="*.csv",
         source={"separator": ";"}, foreign={"event_time": BERLIN}),
    Kind("rows", {"a.csv": lines(*ROWS)}, tuple(ROWS), NAMED, {"event_time": BERLIN}),
    Kind("header again", {"a.csv": lines(HEADER, *ROWS[:3], HEADER, *ROWS[3:])}, source=CSV,
         foreign={"event_time": BERLIN}, bad={"bad-csv": 1}),
    Kind("headers differ", {"a.csv": lines(HEADER, *ROWS[:3]),
                            "b.csv": lines(b"x;" + HEADER, *(b"y;" + row for row in ROWS[3:]))},
         source=CSV, foreign={"event_time": BERLIN}),
    Kind("titles", {"a.csv": lines(b"Export of March", HEADER, *ROWS)}, source=NAMED,
         foreign={"event_time": BERLIN}, bad={"bad-csv": 2}),
    Kind("multiline", {"a.csv": lines(HEADER + b";t", *(row + b';"a\nb;""c"""' for row in ROWS))},
         source=CSV | {"multiline": True}, foreign={"event_time": BERLIN}),
    Kind("lone CR", {"a.csv": lines(HEADER, *ROWS, end=b"\r")}, source=CSV, bad={"bad-csv": 1}, joined=()),
    Kind("w3c", {"a.log": lines(*W3C)}, source=CSV | {"separator": "\t", "columns": ["date", "time", "cid", "qid"]},
         foreign={"event_time": {"column": ["date", "time"]}}, bad={"bad-csv": 2}),
    of_lines("records", {"Records": CLICKS[:4]}, {"Records": [CLICKS[4], 7]}, CLICKS[5],
             source={"records": "Records"}, bad={"not-an-object": 1}),
    of_lines("texts", *TEXTS, source={"json": ["Message"]},
             foreign={"event_id": "Message.cid", "event_time": "Message.ts", "primary_id": "Message.qid"}),
    of_lines("records in texts", {"Message": json.dumps({"Records": CLICKS})},
             source={"json": ["Message"], "records": "Message.Records"}),
    of_lines("one log", *EVENTS, shared={"kind": "shown"}, foreign={"where": {"kind": ["tap", "click"]}}),
    Kind("no last newline", {"a.jsonl": lines(*CLICKS)[:-1]}),
    Kind("no name", {"a.jsonl": gzip.compress(lines(*CLICKS))}, bad=None, joined=()),
    of_lines("nested", *NESTED, foreign={"event_id": "c.ids[1]", "primary_id": "q.a[1]"}),
    of_lines("broken", *BROKEN[:5], *CLICKS, *BROKEN[5:], bad=REASONS),
    of_lines("floats", *FLOATS, joined=(*ALL, "550")),
    of_lines("times", *(one | {"ts": ts} for one, ts in zip(CLICKS, times(), strict=True)),
             foreign={"event_time": {"column": "ts", "format": ["iso", "%d.%m.%Y %H:%M:%S"], "zone": "Europe/Berlin"}}),
    of_lines("misfits", *(one | {"price": price} for one, price in zip(
        CLICKS, (1, "2.50", "x", None, 1e9, {"a": 1}), strict=True)),
        output={"columns": {"price": {"from": "foreign.price", "type": "DECIMAL(10, 2)"}}}),
)  # fmt: skip


def check(bench: Any, kind: Kind, drain: Callable[[], Mapping[str, Any]], found: Callable[[], Any]) -> None:
    """Drain it, and compare with what must become of it; `found`: faults that verification finds."""
    result = drain()
    rows = bench.engine.lake.delta.read("joined").to_pylist()
    assert sorted(row["event_id"] for row in rows) == sorted(kind.joined)
    named = {row["event_id"]: row["primary_id"] for row in rows}
    assert [named[name] for name in kind.joined[:COUNT]] == [str(int(name) - 400) for name in kind.joined[:COUNT]]
    times = {row["event_id"]: row["event_time"] for row in rows}
    assert [times[name] for name in kind.joined[:COUNT]] == [at(n) for n in range(len(kind.joined[:COUNT]))]
    bad = Counter(bench.engine.lake.delta.read("quarantine")["reason"].to_pylist())
    assert bad if kind.bad is None else bad == Counter(kind.bad)
    assert result["accounts"]["agree"]
    assert found() == {}
    if kind.output:
        prices = {row["event_id"]: row["price"] for row in rows}
        wanted = [Decimal(1), Decimal("2.5"), None, None, None, None]
        assert [prices[name] for name in ALL] == wanted
