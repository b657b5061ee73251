"""Which rows share their key with others, and what finds it: against sets and counts of plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.kernel import event_key
from clickjoin.kernel.arrays import distinct
from clickjoin.kernel.event_key import doubled, first_of, found_among, micros, same_key

KEYS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 6)), max_size=60)


def _rows(keys: list[tuple[str, int]]) -> pa.Table:
    times = pa.array([time for _, time in keys], pa.int64()).cast(pa.timestamp("us", "UTC"))
    names = pa.array([name for name, _ in keys], pa.string())
    return pa.table({"event_id": names, "event_time": times, "offset": pa.array(range(len(keys)), pa.int64())})


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)))
def test_distinct_values_are_sorted(values: list[int]) -> None:
    found = distinct(np.array(values, np.int64))
    assert found.tolist() == sorted(set(values))


@given(KEYS)
def test_rows_with_a_key_of_others_are_named(keys: list[tuple[str, int]]) -> None:
    counts, times, names = Counter(keys), Counter(time for _, time in keys), Counter(name for name, _ in keys)
    found = doubled(_rows(keys)).tolist()
    for key, again in zip(keys, found, strict=True):
        assert again or counts[key] == 1
        assert not again or (names[key[0]] > 1 and times[key[1]] > 1)  # else all would be compared whole


@given(KEYS)
def test_of_each_key_the_first_row_is_left(keys: list[tuple[str, int]]) -> None:
    left = first_of(_rows(keys), ("offset",))
    assert sorted(left["offset"].to_pylist()) == sorted(keys.index(key) for key in set(keys))


@given(KEYS, KEYS, st.sampled_from([0, 2, 1_000]))
def test_pairs_of_the_same_id_and_time(keys: list[tuple[str, int]], others: list[tuple[str, int]], shared: int) -> None:
    mine, theirs = _rows(keys), _rows(others)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_key, "_SHARED", shared)  # pairs of a time, from which on ids go first
        one, other = same_key(mine["event_id"], micros(mine), theirs["event_id"], micros(theirs))
    wanted = [(at, to) for at, key in enumerate(keys) for to, name in enumerate(others) if key == name]
    assert sorted(zip(one.tolist(), other.tolist(), strict=True)) == wanted
    assert one.tolist() == sorted(one.tolist())
    assert found_among(mine, theirs).tolist() == [key in others for key in keys]


def test_pairs_of_one_time_are_not_made_of_many_events(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    pairs = event_key.pairs
    monkeypatch.setattr(event_key, "pairs", lambda found: made.append(1) or pairs(found))
    rows = _rows([(f"e{number}", number % 2) for number in range(5_000)])
    one, _ = same_key(rows["event_id"], micros(rows), rows["event_id"], micros(rows))
    assert (one.tolist(), made) == (list(range(5_000)), [])
