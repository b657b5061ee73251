"""What waits: when it is tried again, when it is given up, and what table `pending` says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.config import Retry
from clickjoin.kernel import retry_task
from clickjoin.kernel.data_skipping import Ends
from clickjoin.kernel.parquet_rows import Files, read_columns
from clickjoin.kernel.waiting import TRIED, Tries
from clickjoin.model.ids import MICROS, moment
from clickjoin.schemas import FOREIGN, PENDING, PRIMARY, REGISTRY
from clickjoin.schemas.arrow import arrow_schema
from tests.unit.resolving_bench import BUCKET, PLANNED, click_rows, files, job, query_rows

COLUMNS = pa.schema([
    *(arrow_schema(FOREIGN).field(name) for name in FOREIGN.names[:7]), *TRIED,
])  # fmt: skip
RULES = Tries(PLANNED, 10.0, 2.0, 60.0, again=True, most=3, oldest=500)
CLICKS = [("ok", 20, "Q", 5), ("young", 21, "none", 5), ("old", 22, "none", 6), ("few", 23, "none", 7),
          ("mine", 24, "Q", 5), ("late", 4, "Q", 5)]  # fmt: skip
TRIES = {"young": (2, 900), "old": (2, 500), "few": (1, 100)}


def rows(clicks: Any = CLICKS) -> pa.Table:
    """Events that wait, as a retry takes them up."""
    held = [
        {name: row[name] for name in FOREIGN.names[:7]}
        | {"round": 1, "attempt": TRIES.get(row["event_id"], (0, 0))[0]}
        | {"first_seen": moment(TRIES.get(row["event_id"], (0, 0))[1])}
        for row in click_rows(clicks)
    ]
    return pa.Table.from_pylist(held, schema=COLUMNS)


def outcome(
    folder: Path, tries: Tries, given_: pa.Table, claims: Files | None = None, records: Files | None = None, **more: Any
) -> tuple[Any, dict[str, Any], pa.Table]:
    """The job, what a retry of some events says of itself, and what it gives back."""
    files(folder, PRIMARY, query_rows([("Q", 5)]))
    taken = [{"event_id": "mine", "event_time": moment(24), "bucket": BUCKET, "shard": 0, "token": "t"}]
    claims = claims or files(folder, REGISTRY, [row | {"outcome": "joined"} for row in taken])
    work = job(folder, columns=COLUMNS, tries=tries, sequence="retry", **more)
    said: list[Any] = []
    found = retry_task.resolve
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry_task, "resolve", lambda *given: said.append(found(*given)) or said[-1])
        list(retry_task.work_of(work, claims, records)(iter(given_.to_batches(max_chunksize=2))))
    ((done, left),) = said
    return work, done, left


def written(work: Any, done: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Rows of the files of a table."""
    target, made = work.targets[name], done["files"].get(name, [])
    return read_columns(target.root, [file.path for file in made], target.schema).to_pylist()  # type: ignore[no-any-return]


def test_a_retry_says_of_each_event_what_became_of_it(tmp_path: Path) -> None:
    work, done, left = outcome(tmp_path, RULES, rows(), boundary=dict.fromkeys(range(4), 10))
    states = {row["event_id"]: row for row in written(work, done, "pending")}
    assert {name: (row["state"], row["outcome"], row["round"], row["attempt"]) for name, row in states.items()} == {
        "ok": ("resolved", "joined", 1, 1), "young": ("waiting", None, 1, 3), "old": ("resolved", "unjoinable", 1, 3),
        "few": ("waiting", None, 1, 2), "mine": ("resolved", "claimed_elsewhere", 1, 1),
        "late": ("resolved", "expired", 1, 1),
    }  # fmt: skip
    assert {row["payload"] for row in states.values()} == {None}
    assert {(row["sequence"], row["batch"], row["replica"]) for row in states.values()} == {("retry", 7, "main")}
    assert [states[name]["due_at"] for name in ("young", "few")] == [moment(PLANNED + s * MICROS) for s in (40, 20)]
    given_up, expired = written(work, done, "unjoinable"), written(work, done, "expired")
    assert [(row["event_id"], row["payload"], row["attempt"]) for row in given_up] == [("old", "old/2", 3)]
    assert [(row["event_id"], row["payload"], row["sequence"]) for row in expired] == [("late", "late/5", "retry")]
    claims = {row["event_id"]: row["outcome"] for row in written(work, done, "registry")}
    assert claims == {"ok": "joined", "old": "unjoinable"}
    assert [row["event_id"] for row in written(work, done, "joined")] == ["ok"]
    assert dict(zip(left["event_id"].to_pylist(), left["payload"].to_pylist(), strict=True)) == {
        "young": "young/1", "few": "few/3", "late": "late/5",
    }  # fmt: skip


def test_records_come_from_the_first_row_of_each_event_that_has_one(tmp_path: Path) -> None:
    """Of its own replica: another one keeps a history of its own."""
    given_ = rows([("a", 20, "Q", 5), ("b", 21, "none", 5), ("c", 22, "none", 5)])
    named = dict(zip(("a", "b"), rows([("a", 20, "Q", 5), ("b", 21, "none", 5)]).to_pylist(), strict=True))
    history = [("a", 1, 4, "main", None), ("a", 1, 3, "main", "a/second"), ("a", 0, 9, "main", "a/first"),
               ("a", 0, 1, "other", "a/other"), ("b", 0, 2, "main", "b/own")]  # fmt: skip
    held = [
        named[name] | {"round": round_, "batch": batch, "replica": replica, "payload": payload}
        for name, round_, batch, replica, payload in history
    ]
    records = files(tmp_path, PENDING, held)
    bare = given_.set_column(given_.schema.get_field_index("payload"), "payload", pa.nulls(3, pa.string()))
    work, done, left = outcome(tmp_path, RULES, bare, records=records)
    assert [row["foreign_record"] for row in written(work, done, "joined")] == ["a/first"]
    assert dict(zip(left["event_id"].to_pylist(), left["payload"].to_pylist(), strict=True)) == {
        "b": "b/own", "c": None,
    }  # fmt: skip


def test_what_the_watermark_has_passed_is_given_up_and_counted(tmp_path: Path) -> None:
    _, done, left = outcome(tmp_path, RULES._replace(passed=7), rows())
    assert left["event_id"].to_pylist() == ["few"]  # its query's time is not before it
    tally = done["tallies"]["unjoinable"]
    assert (tally["rows"], tally["absent"]) == (2, 2)


def test_of_two_events_with_one_id_one_is_taken_where_an_id_is_one_events(tmp_path: Path) -> None:
    twice = rows([("a", 20, "Q", 5), ("a", 21, "Q", 5), ("b", 22, "Q", 5)])
    _, done, _ = outcome(tmp_path / "time", RULES, twice)
    assert done["tallies"]["joined"]["rows"] == 3
    nowhere = np.zeros(0, np.int64)
    none = Files(str(tmp_path / "id/registry"), (), Ends(nowhere, nowhere))
    work, done, _ = outcome(tmp_path / "id", RULES, twice, none, by_id=True, alone=True)
    assert sorted(row["event_id"] for row in written(work, done, "registry")) == ["a", "b"]


def delay(rule: Retry, attempt: int) -> float:
    """Seconds from a try (from 0) to the next."""
    try:
        return min(rule.first_delay * rule.backoff**attempt, rule.max_delay)
    except OverflowError:
        return rule.max_delay


@given(st.integers(1, 10**9), st.floats(1, 50), st.integers(1, 10**10), st.lists(st.integers(0, 10_000), min_size=1))
def test_the_next_try_comes_when_backoff_says(first: int, backoff: float, longest: int, tries: list[int]) -> None:
    held = pa.table({"attempt": pa.array(tries, pa.int32())})
    rule = Retry(first_delay=f"{first}ms", backoff=backoff, max_delay=f"{longest}ms")
    rules = Tries(PLANNED, rule.first_delay, rule.backoff, rule.max_delay)
    due = rules.states(held, "pending")["due_at"].cast(pa.int64()).to_pylist()
    assert due == [pytest.approx(PLANNED + delay(rule, attempt) * MICROS, abs=1, rel=1e-9) for attempt in tries]
