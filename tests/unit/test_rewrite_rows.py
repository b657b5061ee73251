"""Rows that go, or get other values, in one commit: whatever another commits meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from clickjoin.engines.arrow import ArrowLake
from clickjoin.engines.arrow.rewrite_rows import count_rows, near, rewrite_rows
from clickjoin.kernel.arrays import Array
from clickjoin.kernel.forgotten import digest
from clickjoin.kernel.rewrite_task import BadRecords, Change, Events, change
from clickjoin.model.txn import Txn
from clickjoin.schemas import FOREIGN, PENDING, QUARANTINE, REGISTRY
from clickjoin.schemas.arrow import arrow_schema

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
ALL = ["a", "b", "c", "d"]
Going = Callable[..., Any]


@pytest.fixture
def lake(tmp_path: Path) -> ArrowLake:
    """A registry of four claims in two files of one bucket."""
    made = another(tmp_path)
    made.delta.create(REGISTRY)
    for ids in ("ab", "cd"):
        append(made, ids)
    return made


def another(root: Path | str) -> ArrowLake:
    """Another process's tables; nothing here is done by Spark."""
    return ArrowLake(None, str(root), sleep=lambda _: None)  # type: ignore[arg-type]


def claims(ids: str, token: str = "t") -> pa.Table:
    """Claims, an hour apart by bucket where their ids are in capitals."""
    rows = []
    for name in ids:
        at = NOON + timedelta(seconds=ord(name.lower()), hours=name.isupper())
        values = (name, at, f"{at:%Y-%m-%dT%H}00Z", 3, token, "joined")
        rows.append(dict(zip(REGISTRY.names, values, strict=True)))
    return pa.Table.from_pylist(rows, schema=arrow_schema(REGISTRY))


def append(lake: ArrowLake, ids: str) -> None:
    lake.delta.append_table("registry", claims(ids))


def ids_of(lake: ArrowLake) -> list[str]:
    return sorted(lake.delta.read("registry", columns=["event_id"])["event_id"].to_pylist())


def remove(lake: ArrowLake, ids: str, meanwhile: Callable[[], None] | None = None, txn: Txn | None = None) -> int:
    """Take claims away; `meanwhile`: what another does after the first look at a file."""
    keys = claims(ids)
    meant, left = Events(keys, ("token",)), [meanwhile] if meanwhile else []

    def looking(rows: pa.Table) -> Array:
        found = meant(rows)
        if left:
            left.pop()()
        return found

    return rewrite_rows(lake, "registry", near(keys), Change(looking, meant.looks_at), txn)


def test_rows_go_and_their_neighbours_stay_as_they_were(lake: ArrowLake) -> None:
    append(lake, "A")
    kept = [row for row in lake.delta.read("registry").to_pylist() if row["event_id"] not in "bA"]
    assert remove(lake, "bA") == 2
    rows = lake.delta.read("registry").to_pylist()
    assert sorted(rows, key=lambda row: row["event_id"]) == sorted(kept, key=lambda row: row["event_id"])
    assert lake.delta.rows("registry") == 3  # by the log


def test_a_claim_of_another_token_stays(lake: ArrowLake) -> None:
    lake.delta.append_table("registry", claims("e", token="other"))
    version = lake.delta.version("registry")
    assert remove(lake, "e") == 0
    assert (ids_of(lake), lake.delta.version("registry")) == ([*ALL, "e"], version)


def test_two_that_rewrite_the_same_file(lake: ArrowLake) -> None:
    assert remove(lake, "a", lambda: assert_is(remove(another(lake.delta.root), "b"), 1)) == 1
    assert ids_of(lake) == ["c", "d"]


def test_the_same_row_is_taken_away_twice(lake: ArrowLake) -> None:
    assert remove(lake, "a", lambda: assert_is(remove(another(lake.delta.root), "a"), 1)) == 0
    assert ids_of(lake) == ["b", "c", "d"]


def test_rows_that_come_meanwhile_stay(lake: ArrowLake) -> None:
    assert remove(lake, "a", lambda: append(another(lake.delta.root), "ef")) == 1
    assert ids_of(lake) == ["b", "c", "d", "e", "f"]


def test_one_that_is_to_go_comes_again_meanwhile(lake: ArrowLake) -> None:
    assert remove(lake, "a", lambda: append(another(lake.delta.root), "ae")) == 2
    assert ids_of(lake) == ["b", "c", "d", "e"]


def test_the_files_are_packed_by_another_meanwhile(lake: ArrowLake) -> None:
    assert remove(lake, "ad", lambda: assert_is(packed(lake), None)) == 2
    assert ids_of(lake) == ["b", "c"]


def packed(lake: ArrowLake) -> None:
    done = another(lake.delta.root).delta.open("registry").optimize.compact()
    assert done["numFilesRemoved"] == 2


def test_cut_short_before_the_commit(lake: ArrowLake) -> None:
    version = lake.delta.version("registry")

    def dies() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        remove(lake, "ad", dies)
    assert (ids_of(lake), lake.delta.version("registry")) == (ALL, version)
    assert remove(another(lake.delta.root), "ad") == 2
    assert ids_of(lake) == ["b", "c"]


@pytest.mark.parametrize("txn", [None, Txn("one", 1)])
def test_run_again_after_the_commit(lake: ArrowLake, txn: Txn | None) -> None:
    assert remove(lake, "ab", txn=txn) == 2
    version = lake.delta.version("registry")
    assert remove(another(lake.delta.root), "ab", txn=txn) == 0
    assert (ids_of(lake), lake.delta.version("registry")) == (["c", "d"], version)
    assert lake.delta.latest_txn_version("registry", "one") == (1 if txn else -1)


def test_a_copy_that_comes_late_takes_nothing_away(lake: ArrowLake) -> None:
    late = partial(remove, another(lake.delta.root), "c", None, Txn("one", 1))
    assert remove(lake, "a", txn=Txn("one", 1)) == 1
    assert late() == 0
    assert ids_of(lake) == ["b", "c", "d"]


def test_a_txn_is_kept_where_no_row_is_meant(lake: ArrowLake) -> None:
    assert remove(lake, "x", txn=Txn("one", 1)) == 0
    assert lake.delta.latest_txn_version("registry", "one") == 1


def test_the_answer_is_lost(lake: ArrowLake, lost_answer: list[int]) -> None:
    assert remove(lake, "a") == 1
    assert (ids_of(lake), lake.delta.version("registry"), len(lost_answer)) == (["b", "c", "d"], lost_answer[0], 1)


def test_values_that_rows_have_instead(tmp_path: Path) -> None:
    lake = another(tmp_path)
    lake.delta.create(FOREIGN)
    names = ("a", "b", "c")
    rows = [
        {"event_id": name, "event_time": NOON, "bucket": "2026-03-10T1200Z", "payload": text, "offset": 7}
        for name, text in zip(names, ('{"a": 1}', '{"b": 1}', None), strict=True)
    ]
    lake.delta.append("foreign", rows)
    lake.delta.add_columns("foreign", {"more": "INT"})
    keys = lake.delta.read("foreign", columns=["event_id", "event_time"]).slice(0, 3)
    meant = change(Events(keys), {"payload": "{}", "primary_id": None}, with_record=True)
    assert count_rows(lake, "foreign", near(keys), meant) == 2
    assert [rewrite_rows(lake, "foreign", near(keys), meant) for _ in range(2)] == [2, 0]
    found = {row["event_id"]: row for row in lake.delta.read("foreign").to_pylist()}
    assert {name: row["payload"] for name, row in found.items()} == {"a": "{}", "b": "{}", "c": None}
    assert {(row["bucket"], row["offset"], row["event_time"]) for row in found.values()} == {
        ("2026-03-10T1200Z", 7, NOON)
    }


def test_rows_up_to_a_round(tmp_path: Path) -> None:
    lake = another(tmp_path)
    lake.delta.create(PENDING)
    for number in range(3):
        row = {"event_id": "a", "event_time": NOON, "replica": "main", "round": number}
        lake.delta.append("pending", [row, row | {"replica": "west"}])
    kinds = pa.schema([arrow_schema(PENDING).field(name) for name in ("event_id", "event_time", "replica", "round")])
    keys = pa.Table.from_pylist([{"event_id": "a", "event_time": NOON, "replica": "main", "round": 1}], schema=kinds)
    meant = change(Events(keys, ("replica",), ("round",)))
    assert rewrite_rows(lake, "pending", near(keys), meant) == 2
    left = [(row["replica"], row["round"]) for row in lake.delta.read("pending").to_pylist()]
    assert sorted(left) == [("main", 2), ("west", 0), ("west", 1), ("west", 2)]


def assert_is(found: object, wanted: object) -> None:
    assert found == wanted


def test_bad_records_lose_their_bytes(tmp_path: Path) -> None:
    lake = another(tmp_path)
    lake.delta.create(QUARANTINE)
    rows = [{"stream": stream, "raw": raw} for stream in ("primary", "foreign") for raw in (b"{a", b"{b", None)]
    lake.delta.append("quarantine", rows)
    bad = change(BadRecords({"foreign": frozenset([digest(b"{a")])}), {"raw": None, "detail": "gone"})
    assert [rewrite_rows(lake, "quarantine", lambda files: files, bad) for _ in range(2)] == [1, 0]
    left = [(row["stream"], row["raw"], row["detail"]) for row in lake.delta.read("quarantine").to_pylist()]
    wanted = [(row["stream"], row["raw"], None) for row in rows if (row["stream"], row["raw"]) != ("foreign", b"{a")]
    assert sorted(left, key=str) == sorted([*wanted, ("foreign", None, "gone")], key=str)
