"""What a task makes of its part of a batch, checked against the same rules written naively."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickjoin.kernel import lookup
from clickjoin.kernel.adapter import AdapterFault, ArrowAdapter
from clickjoin.kernel.join_task import resolve_part
from clickjoin.kernel.parquet_rows import read_columns
from tests.unit import resolving_bench
from tests.unit.resolving_bench import around, expected_result, job, part

times = st.integers(0, 40)
clicks = st.lists(st.tuples(st.sampled_from("abcdefg"), times, st.sampled_from("QRS"), times), max_size=14)
queries = st.lists(st.tuples(st.sampled_from("QRS"), times), max_size=8)
bounds = st.dictionaries(st.integers(0, 3), times, max_size=3)


def micros(rows: pa.Table, name: str = "event_time") -> list[int]:
    """Times as numbers."""
    return rows[name].cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]


def written(job_: Any, done: dict[str, Any], name: str) -> pa.Table:
    """Rows of the files of a table."""
    target = job_.targets[name]
    return read_columns(target.root, [file.path for file in done["files"].get(name, [])], target.schema)


def seen(job_: Any, done: dict[str, Any], left: pa.Table) -> dict[str, set[Any]]:
    """What was written and given back, in the words of `expected_result`."""
    found: dict[str, set[Any]] = {"repeat": set(), "joined": set()}
    for status in ("pending", "expired"):
        some = left.filter(pc.equal(left["status"], status))
        found[status] = set(zip(some["event_id"].to_pylist(), micros(some), strict=True))
        assert (status != "pending" and not some.num_rows) or stored(job_, done, some, status)
    rows = written(job_, done, "joined")
    names = (rows[name].to_pylist() for name in ("event_id", "foreign_record", "primary_record"))
    ids, foreign, primary = names
    found["joined"] = set(zip(ids, micros(rows), foreign, primary, micros(rows, "primary_time"), strict=True))
    claims = written(job_, done, "registry")
    claimed = list(zip(claims["event_id"].to_pylist(), micros(claims), strict=True))
    assert sorted(claimed) == sorted(row[:2] for row in found["joined"])
    assert set(claims["outcome"].to_pylist()) <= {"joined"}
    return found


def stored(job_: Any, done: dict[str, Any], some: pa.Table, status: str) -> bool:
    """Whether a table holds just those events that were given back, whole."""
    rows, names = written(job_, done, status), ["event_id", "event_time", "primary_id", "payload"]
    return sorted(map(str, rows.select(names).to_pylist())) == sorted(map(str, some.select(names).to_pylist()))


@settings(max_examples=150, deadline=None)
@given(
    clicks, queries, st.lists(st.tuples(st.sampled_from("abcdefg"), times), max_size=5, unique=True),
    st.sampled_from([(), (0, 2), (1,)]), bounds, st.none() | times, st.none() | st.integers(0, 20), st.booleans(),
    st.sampled_from([0, 200]),
)  # fmt: skip
def test_every_click_has_its_status(
    some: Any, asked: Any, claims: Any, shards: Any, boundary: Any, floor: Any, lookback: Any, known: bool, few: int
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookup, "_FEW_A_FILE", few)  # then columns that only those that are double need come later
        made = part(Path(name), some, asked, claims, shards, known)
        work = job(Path(name), boundary=boundary, floor=floor, around=around(lookback))
        ((done, left),) = resolve_part(work, made)
        wanted = expected_result(some, asked, claims, shards, boundary, floor, lookback)
        found = seen(work, done, left)
        assert {status: found[status] for status in ("joined", "pending", "expired")} == {
            status: wanted[status] for status in ("joined", "pending", "expired")
        }
        counts = {status: tally["rows"] for status, tally in done["tallies"].items() if tally["rows"]}
        assert counts == {status: len(held) for status, held in wanted.items() if held}


class Odd(ArrowAdapter):
    """Keeps clicks with an odd number, in no order, and says how often it was asked."""

    columns: ClassVar[Mapping[str, str]] = {"twice": "STRING"}

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Columns out: event_id, event_time, twice."""
        odd = [int(text.rpartition("/")[2]) % 2 == 1 for text in joined["payload"].to_pylist()]
        rows = joined.filter(pa.array(odd, pa.bool_()))
        rows = rows.take(pa.array(range(rows.num_rows - 1, -1, -1), pa.int64()))
        texts = [f"{text} {text}" for text in rows["payload"].to_pylist()]
        return rows.select(["event_id", "event_time"]).append_column("twice", pa.array(texts, pa.string()))


def test_an_adapter_that_leaves_out() -> None:
    """What it leaves out is claimed, and kept in `filtered` with its query's time."""
    some = [(name, 20 + at, "Q", 5) for at, name in enumerate("abcd")]
    with tempfile.TemporaryDirectory() as name:
        made = part(Path(name), some, [("Q", 5)])
        work = job(Path(name), adapter=Odd())
        ((done, left),) = resolve_part(work, made)
        rows = {status: written(work, done, status) for status in ("joined", "filtered", "registry")}
    assert left.num_rows == 0
    assert dict(zip(*(rows["joined"][n].to_pylist() for n in ("event_id", "twice")), strict=True)) == {
        "b": "b/1 b/1", "d": "d/3 d/3",
    }  # fmt: skip
    assert sorted(rows["filtered"]["event_id"].to_pylist()) == ["a", "c"]
    assert micros(rows["filtered"], "primary_time") == [5, 5]
    claims = dict(zip(*(rows["registry"][n].to_pylist() for n in ("event_id", "outcome")), strict=True))
    assert claims == {"a": "filtered", "b": "joined", "c": "filtered", "d": "joined"}


class Twice(Odd):
    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Each row twice."""
        rows = super().merge_table(joined)
        return pa.concat_tables([rows, rows])


class Invents(Odd):
    def merge_table(self, joined: pa.Table) -> pa.Table:
        """An event that was not there."""
        rows = super().merge_table(joined)
        return rows.set_column(0, "event_id", pa.repeat("x", rows.num_rows))


class Moves(Odd):
    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Another time."""
        rows = super().merge_table(joined)
        return rows.set_column(1, "event_time", pa.repeat(joined["primary_time"][0], rows.num_rows))


class Raises(Odd):
    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Nothing."""
        raise KeyError("price")


class Mistyped(Odd):
    columns: ClassVar[Mapping[str, str]] = {"twice": "BIGINT"}


class Lacks(Odd):
    columns: ClassVar[Mapping[str, str]] = {"twice": "STRING", "price": "DOUBLE"}


@pytest.mark.parametrize(
    ("adapter", "said"),
    [
        (Twice, "made two rows of one event, such as b"), (Invents, "gave an event that was not there: x"),
        (Moves, "gave an event that was not there: b"), (Raises, "raised KeyError: 'price'"),
        (Mistyped, "raised ArrowInvalid"), (Lacks, "dropped price"),
    ],
)  # fmt: skip
def test_an_adapter_at_fault(adapter: type[ArrowAdapter], said: str) -> None:
    some = [(name, 20 + at, "Q", 5) for at, name in enumerate("ab")]
    with tempfile.TemporaryDirectory() as name:
        made = part(Path(name), some, [("Q", 5)])
        with pytest.raises(AdapterFault, match=said):
            resolve_part(job(Path(name), adapter=adapter()), made)


@pytest.mark.parametrize("lookback", [None, 10])
def test_a_forgotten_primary_event_is_not_found(tmp_path: Path, lookback: int | None, monkeypatch: Any) -> None:
    """Not even where another copy of it holds its record still."""
    rows = resolving_bench.query_rows

    def emptied(queries: Any) -> list[dict[str, Any]]:
        return [row | ({"payload": "{}"} if row["offset"] == 1 else {}) for row in rows(queries)]

    monkeypatch.setattr(resolving_bench, "query_rows", emptied)
    mine = part(tmp_path, [("a", 5, "Q", 3), ("b", 5, "R", 3)], [("Q", 3), ("Q", 3), ("R", 3)])
    ((done, left),) = resolve_part(job(tmp_path, around=around(lookback)), mine)
    assert left["event_id"].to_pylist() == ["a"]
    assert done["tallies"]["joined"]["rows"] == 1
