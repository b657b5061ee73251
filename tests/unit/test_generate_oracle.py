"""The oracle must see every fault that it is there for: here it looks at small lakes made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests import oracle

CLICKS = {f"10.2.0.1:7:16000000000000{n:02}": f"10.1.0.1:7:15000000000000{n:02}" for n in range(10)}
FIRST, SECOND, *_ = CLICKS
UNHEARD = "1:1:1600000000000000"
Tables = dict[str, list[dict[str, Any]]]


def row(event_id: str, primary_id: str) -> dict[str, Any]:
    """A row of the output."""
    records = {"foreign_record": event_id, "primary_record": primary_id}
    texts = {name: json.dumps({"event_id": one}) for name, one in records.items()}
    return {"event_id": event_id, "primary_id": primary_id, **texts}


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """Logs, and the tables that a pipeline without fault makes of them: 8 joined, 1 filtered, 1 pending."""
    for stream, ids in (("clicks", CLICKS), ("impressions", dict.fromkeys(CLICKS.values()))):
        (tmp_path / stream).mkdir()
        lines = [json.dumps({"event_id": event_id, "query_id": named}) for event_id, named in ids.items()]
        (tmp_path / stream / "a.jsonl").write_text("\n".join([*lines, lines[0], '{"event_id": "10.', "", ""]))
    joined = [row(*pair) for pair in list(CLICKS.items())[:8]]
    last = [{"event_id": event_id} for event_id in list(CLICKS)[8:]]
    return {
        "joined": joined, "filtered": last[:1], "pending": [*last[1:], *last[1:]], "unjoinable": [], "expired": [],
        "foreign": [{"event_id": event_id} for event_id in [*CLICKS, FIRST]],
        "primary": [{"event_id": event_id} for event_id in [*CLICKS.values(), CLICKS[FIRST]]],
        "quarantine": [{"stream": s, "part": part} for s in ("foreign", "primary") for part in (0, 1)],
    }  # fmt: skip


def verdict(folder: Path, tables: Tables) -> oracle.Verdict:
    """Write the tables, and ask the oracle."""
    for name, rows in tables.items():
        columns = {"stream": pa.string(), "part": pa.int32()} if name == "quarantine" else {"event_id": pa.string()}
        if name == "joined":
            columns |= dict.fromkeys(("primary_id", "foreign_record", "primary_record"), pa.string())
        table = pa.Table.from_pylist(rows, schema=pa.schema(list(columns.items())))
        write_deltalake(str(folder / "lake" / name), table)
    return oracle.examine(f"{folder}/clicks/*", f"{folder}/impressions/*", folder / "lake")


def test_agrees(tmp_path: Path, tables: Tables) -> None:
    found = verdict(tmp_path, tables)
    assert found.ok, found.text()
    assert (found.clicks, found.joined, found.filtered, found.pending) == (10, 8, 1, 1)
    assert (found.duplicate_lines, found.quarantined_lines) == (1, 1)
    arguments = ["--clicks", f"{tmp_path}/clicks/*", "--impressions", f"{tmp_path}/impressions/*"]
    assert oracle.main([*arguments, "--tables", str(tmp_path / "lake")]) == 0


def _other_primary(tables: Tables) -> None:
    tables["joined"][0] = row(FIRST, CLICKS[SECOND])


def _other_record(tables: Tables) -> None:
    tables["joined"][0]["primary_record"] = json.dumps({"event_id": CLICKS[SECOND]})


@pytest.mark.parametrize(
    ("spoil", "fault", "which"),
    [
        (lambda tables: tables["joined"].append(tables["joined"][0]), "doubled", {FIRST}),
        (lambda tables: tables["joined"].pop(0), "lost", {FIRST}),
        (lambda tables: tables["joined"].append(row(UNHEARD, CLICKS[FIRST])), "extra", {UNHEARD}),
        (_other_primary, "wrong", {FIRST}),
        (_other_record, "wrong", {FIRST}),
        (lambda tables: tables["filtered"].append({"event_id": FIRST}), "two_places", {FIRST}),
        (lambda tables: tables["quarantine"].pop(0), "unaccounted", {"foreign": 1}),
        (lambda tables: tables["primary"].pop(), "unaccounted", {"primary": 1}),
    ],
)  # fmt: skip
def test_sees_the_fault(
    tmp_path: Path, tables: Tables, spoil: Callable[[Tables], None], fault: str, which: Any
) -> None:
    spoil(tables)
    found = verdict(tmp_path, tables)
    assert not found.ok
    assert getattr(found, fault) == which
    assert [name for name in oracle.FAULTS if getattr(found, name)] == [fault]


@pytest.mark.parametrize(
    "line",
    [
        b"", b"[]", b"null", b'{"event_id":1}', b'{"event_id":""}', b'{"event_id":"a:1:0"}', b'{"event_id":"a:b:16@"}',
        b'{"event_id":"a:1:99@"}', b'{"event_id":"a:1:16@"', b'{"event_id":"a\xff:1:16@"}', b'{"event_id":"a:1:16@"}\0',
        b'{"event_id":"a:1:16@","query_id":null}',
    ],
)  # fmt: skip
def test_knows_a_bad_record(line: bytes) -> None:
    assert oracle.good(line.replace(b"@", b"0" * 14), "query_id", 1_700_000_000_000_000) is None


def test_knows_a_good_record() -> None:
    line = b'{"event_id":"a:1:1600000000000000","query_id":"b:2:1500000000000000","more":[1]}\r\n'
    assert oracle.good(line, "query_id", 1_700_000_000_000_000) == ("a:1:1600000000000000", "b:2:1500000000000000")
