"""What a task makes of its part of a batch, held against the same rules told naively."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from clickjoin.joiner.resolving import resolve
from clickjoin.lake.picking import whole
from tests.unit.resolving_bench import job, part, told

times = st.integers(0, 40)
clicks = st.lists(st.tuples(st.sampled_from("abcdefg"), times, st.sampled_from("QRS"), times), max_size=14)
queries = st.lists(st.tuples(st.sampled_from("QRS"), times), max_size=8)
bounds = st.dictionaries(st.integers(0, 3), times, max_size=3)


def micros(rows: pa.Table, name: str = "event_time") -> list[int]:
    """Times as numbers."""
    return rows[name].cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]


def seen(job_: Any, done: dict[str, Any], left: pa.Table) -> dict[str, set[Any]]:
    """What was written and given back, in the words of `told`."""
    found: dict[str, set[Any]] = {"repeat": set(), "joined": set()}
    for status in ("pending", "expired"):
        some = left.filter(pc.equal(left["status"], status))
        found[status] = set(zip(some["event_id"].to_pylist(), micros(some), strict=True))
    rows = whole(job_.joined.root, [file.path for file in done["output"]], job_.joined.schema)
    names = (rows[name].to_pylist() for name in ("event_id", "foreign", "primary"))
    ids, foreign, primary = names
    found["joined"] = set(zip(ids, micros(rows), foreign, primary, micros(rows, "primary_time"), strict=True))
    claims = whole(job_.registry.root, [file.path for file in done["claims"]], job_.registry.schema)
    claimed = list(zip(claims["event_id"].to_pylist(), micros(claims), strict=True))
    assert sorted(claimed) == sorted(row[:2] for row in found["joined"])
    assert set(claims["outcome"].to_pylist()) <= {"joined"}
    return found


@settings(max_examples=150, deadline=None)
@given(
    clicks, queries, st.lists(st.tuples(st.sampled_from("abcdefg"), times), max_size=5, unique=True),
    st.sampled_from([(), (0, 2), (1,)]), bounds, st.none() | times, st.none() | st.integers(0, 20), st.booleans(),
)  # fmt: skip
def test_every_click_has_its_status(
    some: Any, asked: Any, claims: Any, shards: Any, boundary: Any, floor: Any, within: Any, known: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        made = part(Path(name), some, asked, claims, shards, known)
        work = job(Path(name), boundary=boundary, floor=floor, within=within)
        done, left = resolve(work, made)
        wanted = told(some, asked, claims, shards, boundary, floor, within)
        found = seen(work, done, left)
        assert {status: found[status] for status in ("joined", "pending", "expired")} == {
            status: wanted[status] for status in ("joined", "pending", "expired")
        }
        assert {status: tally["rows"] for status, tally in done["tallies"].items()} == {
            status: len(wanted[status]) for status in wanted
        }
