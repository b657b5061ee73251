"""What is in pending, unjoinable, expired and quarantine: counted by the tables' own rules, and listed newest first."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from clickjoin.cli import main
from clickjoin.config.starter import STARTER
from clickjoin.engines.arrow import ArrowTables
from clickjoin.report import listing
from clickjoin.report.export import export
from clickjoin.report.listing import LAYOUTS, listed
from clickjoin.retry.pending import open_rows
from clickjoin.schemas import BY_NAME
from tests.unit.lakes import NOON, pipeline

NOW = NOON + timedelta(hours=5)
_BEGIN = {"shard": 0, "primary_id": "q", "primary_time": NOON, "round": 0, "replica": "main", "batch": 1}


def state(name: str, minutes: int, attempt: int, state: str = "waiting", **more: Any) -> dict[str, Any]:
    """A row of `pending`: an event so many minutes after noon."""
    at = NOON + timedelta(minutes=minutes)
    row = {"event_id": name, "event_time": at, "bucket": f"{at:%Y-%m-%dT%H00Z}", "attempt": attempt, "state": state}
    return _BEGIN | row | {"due_at": NOW if state == "waiting" else None, "sequence": "retry"} | more


def bad(reason: str, minutes: int, path: str = "a", offset: int = 0, **more: Any) -> dict[str, Any]:
    """A row of `quarantine`, so many minutes after noon."""
    row = {"at": NOON + timedelta(minutes=minutes), "stream": "foreign", "reason": reason, "detail": "why\x1b[2J"}
    place = {"path": path, "source_partition": path, "offset": offset, "length": 3, "raw": b"bad"}
    return row | place | {"replica": "main", "batch": 1} | more


PENDING = [
    state("a", 0, 1), state("a", 0, 2, due_at=NOW + timedelta(hours=1)),
    state("b", 61, 1), state("b", 61, 2, "resolved", outcome="joined"),
    state("c", 62, 3, "resolved", outcome="unjoinable"), state("c", 62, 0, round=1),  # sent round again
    state("d", 63, 2), state("d", 63, 2, "resolved", outcome="joined"),
    state("e", 64, 1), state("e", 64, 1, replica="east"),
    state("e", 65, 1),  # another event: the same id at another time
]  # fmt: skip
WAITS = [("e", 65, "due"), ("e", 64, "due"), ("e", 64, "due"), ("c", 62, "due"), ("a", 0, "waiting")]


def lake(folder: Path, rows: Mapping[str, list[dict[str, Any]]]) -> ArrowTables:
    """Tables with these rows, in two commits each."""
    delta = ArrowTables(pipeline(folder).root)
    for name, some in rows.items():
        delta.create(BY_NAME[name])
        delta.append(name, some[::2])
        delta.append(name, some[1::2])
    return delta


@pytest.mark.parametrize("held", [listing.HELD, 4, 1])
def test_pending_is_what_still_waits_however_little_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    delta = lake(tmp_path, {"pending": PENDING})
    monkeypatch.setattr(listing, "HELD", held)
    found = listed(delta, "pending", NOW)
    assert found.count == len(open_rows(delta)) == len(WAITS)
    minutes = [(row["event_time"] - NOON) // timedelta(minutes=1) for row in found.rows]
    assert [(row["event_id"], at, row["state"]) for row, at in zip(found.rows, minutes, strict=True)] == WAITS
    assert found.groups == [
        {"state": "due", "attempt": 0, "count": 1}, {"state": "due", "attempt": 1, "count": 3},
        {"state": "waiting", "attempt": 2, "count": 1},
    ]  # fmt: skip
    hours = listed(delta, "pending", NOW, by="hour").groups
    assert hours == [{"hour": NOON + timedelta(hours=1), "count": 4}, {"hour": NOON, "count": 1}]


def test_no_more_rows_are_held_than_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [state(f"e{n}", n, 1) for n in range(200)]
    delta = lake(tmp_path, {"pending": rows})
    monkeypatch.setattr(listing, "HELD", 50)
    seen: list[int] = []
    whole = listing._waiting
    monkeypatch.setattr(listing, "_waiting", lambda rows, now: seen.append(rows.num_rows) or whole(rows, now))
    assert listed(delta, "pending", NOW, limit=3).count == sum(seen) == 200
    assert max(seen) <= 100


def test_a_range_and_a_limit(tmp_path: Path) -> None:
    delta = lake(tmp_path, {"pending": PENDING})
    hour = timedelta(hours=1)
    found = listed(delta, "pending", NOW, since=NOON + hour, until=NOON + hour + timedelta(minutes=4), limit=1)
    assert (found.count, [row["event_id"] for row in found.rows]) == (1, ["c"])
    assert listed(delta, "pending", NOW, until=NOON).count == 0


def test_unjoinable_and_expired(tmp_path: Path) -> None:
    given_up = [{"token": "p/main/retry/1", "at": NOW} | state(name, n, 3) for n, name in enumerate("xy")]
    late = [{"at": NOW + timedelta(hours=n)} | state("z", 1, 0, batch=n) for n in range(2)]
    fit = {
        name: [{key: row[key] for key in row if key in BY_NAME[name].names} for row in rows]
        for name, rows in {"unjoinable": given_up, "expired": late}.items()
    }
    delta = lake(tmp_path, fit)
    found = listed(delta, "unjoinable", NOW)
    assert [(row["event_id"], row["token"]) for row in found.rows] == [("y", "p/main/retry/1"), ("x", "p/main/retry/1")]
    assert found.groups == [{"attempt": 3, "count": 2}]
    found = listed(delta, "expired", NOW)  # it came twice, and is one event
    assert (found.count, [row["batch"] for row in found.rows]) == (1, [1])


def test_quarantine_counts_records(tmp_path: Path) -> None:
    rows = [bad("bad-time", 0, "a"), bad("bad-time", 60, "b", 5), bad("broken-json", 1, "a", 9)]
    pieces = [bad("too-long", 2, "c", part=n) for n in range(3)]
    delta = lake(tmp_path, {"quarantine": rows + pieces})
    found = listed(delta, "quarantine", NOW, limit=2)
    assert [(row["path"], row["offset"]) for row in found.rows] == [("b", 5), ("c", 0)]
    assert {group["reason"]: group["count"] for group in found.groups} == {
        "bad-time": 2, "too-long": 1, "broken-json": 1
    }  # fmt: skip
    by_file = listed(delta, "quarantine", NOW, by="file").groups
    assert {group["path"]: group["count"] for group in by_file} == {"a": 2, "b": 1, "c": 1}
    assert listed(delta, "quarantine", NOW, since=NOON + timedelta(minutes=30)).count == 1


def test_what_is_listed_is_in_the_tables() -> None:
    for name, layout in LAYOUTS.items():
        assert {layout.time, *layout.then, *layout.columns} <= set(BY_NAME[name].names)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs a command on a lake whose tables are empty; returns exit code, stdout and stderr."""
    file = tmp_path / "p.yaml"
    file.write_text(STARTER)
    monkeypatch.setenv("COLUMNS", "40")

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["clickjoin", *map(str, arguments), "-c", str(file)])
        with pytest.raises(SystemExit) as stopped:
            main.main()
        out = capsys.readouterr()
        return int(stopped.value.code or 0), out.out, out.err

    for name in LAYOUTS:
        ArrowTables(str(tmp_path / "lake/clicks")).create(BY_NAME[name])
    return call


def filled(tmp_path: Path) -> None:
    """Something in the lake of `run`."""
    delta = ArrowTables(str(tmp_path / "lake/clicks"))
    delta.append("pending", PENDING)
    delta.append("quarantine", [bad("bad-time", n, "logs/a.jsonl", n) for n in range(30)])


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_an_empty_table_says_so(run, name: str) -> None:
    code, out, _ = run(name)
    assert (code, out.count("\n")) == (0, 1)
    assert out.startswith(f"{name}: no ")
    code, out, err = run(name, "--json")
    assert (code, out) == (0, "")
    assert err.startswith(f"{name}: no ")


def test_lines_are_whole_at_any_width(run, tmp_path: Path) -> None:
    filled(tmp_path)
    _, out, _ = run("pending", "--limit", 2)
    assert "pending: 5 events wait for their primary event\n" in out
    assert "2 of 5 shown; --limit shows more\n" in out
    assert "e         2026-03-01T13:05:00Z  q           due    1        2026-03-01T17:00:00Z\n" in out
    _, out, _ = run("quarantine")
    assert "quarantine: 30 records could not be understood\n" in out
    assert r"2026-03-01T12:29:00Z  foreign  bad-time  logs/a.jsonl  29      why\x1b[2J" in out
    assert "20 of 30 shown" in out


def test_a_json_object_a_line(run, tmp_path: Path) -> None:
    filled(tmp_path)
    _, out, err = run("pending", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [tuple(row) for row in rows] == [LAYOUTS["pending"].columns] * len(WAITS)
    assert (rows[0]["event_time"], err) == ("2026-03-01T13:05:00.000000Z", "")
    assert datetime.fromisoformat(rows[0]["due_at"]) == NOW.replace(tzinfo=UTC)
    _, out, _ = run("quarantine", "--by", "file", "--json")
    assert json.loads(out) == {"path": "logs/a.jsonl", "count": 30}
    assert "pending: 1 event waits for its primary event\n" in run("pending", "--to", "2026-03-01T13:00Z")[1]
    assert len(run("quarantine", "--json", "--limit", 7)[1].splitlines()) == 7


def given_up(tmp_path: Path) -> None:
    """Events that were given up in the lake of `run`: one whose query is spelt otherwise, and one without any."""
    delta = ArrowTables(str(tmp_path / "lake/clicks"))
    delta.create(BY_NAME["primary"])
    delta.append("primary", [{"event_id": "Q", "event_time": NOON, "bucket": "2026-03-01T1200Z"}])
    rows = [state("a", 0, 3), state("b", 1, 3, primary_id="none", primary_time=NOON)]
    fit = [{key: row[key] for key in row if key in BY_NAME["unjoinable"].names} | {"at": NOW} for row in rows]
    delta.append("unjoinable", fit)


def test_why_events_were_given_up(run, tmp_path: Path) -> None:
    given_up(tmp_path)
    _, out, _ = run("unjoinable")
    lines = out.splitlines()
    assert lines[-3].split()[-1] == "cause"
    assert lines[-2].endswith("  Its primary event 'none' has not landed")
    assert "  Its primary event 'q' has not landed, but 'Q' has: ids are compared" in lines[-1]
    rows = [json.loads(line) for line in run("unjoinable", "--json")[1].splitlines()]
    assert [row["cause"][:45] for row in rows] == [line[line.index("Its") :][:45] for line in lines[-2:]]
    assert "cause" not in run("unjoinable", "--no-cause")[1]
    assert "cause" not in run("unjoinable", "--by", "hour")[1]


def test_a_range_that_is_none(run) -> None:
    code, _, err = run("expired", "--from", "2026-03-02", "--to", "2026-03-01")
    assert (code, "--from 2026-03-02 is not before --to 2026-03-01" in err) == (2, True)
    assert run("expired", "--from", "noon")[0] == 2
    assert run("expired", "--by", "reason")[0] == 2


def test_an_export_says_how_large_its_file_is(run, tmp_path: Path) -> None:
    filled(tmp_path)
    out = tmp_path / "out.jsonl"
    code, said, _ = run("quarantine", "export", "--out", out)
    assert (code, f"{out}: 30 records, {out.stat().st_size} bytes (bad-time 30)" in said) == (0, True)


def test_an_export_without_a_line_end(tmp_path: Path) -> None:
    delta = lake(tmp_path, {"quarantine": [bad("bad-time", 0, "a"), bad("bad-time", 0, "b")]})
    out = tmp_path / "out.jsonl"
    done = export(pipeline(tmp_path), delta, out)
    assert (done.bytes, out.read_bytes().splitlines()[1:]) == (out.stat().st_size, [b"bad", b"bad"])
