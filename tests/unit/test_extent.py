"""Extents: literals that hold every row they are made for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.model.extent import Extent, merge, spanning, timestamp
from clickjoin.model.ids import MICROS, bucket_of

DAY = datetime(2026, 1, 1, tzinfo=UTC)
MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2026, 3, 1), timezones=st.just(UTC))
WIDTHS = st.sampled_from([60, 900, 3600, 86_400])


def bucket(at: datetime, width: int) -> str:
    return bucket_of(int(at.timestamp()) * MICROS, width)


def covers(extent: Extent, name: str) -> bool:
    """Whether the extent's terms hold for a bucket."""
    return min(extent.buckets) <= name <= max(extent.buckets) if extent.wide else name in extent.buckets


def test_timestamp() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 60, tzinfo=timezone(timedelta(hours=9)))
    assert timestamp(at) == "TIMESTAMP '2026-01-01 18:04:05.000060+00:00'"


def test_sql() -> None:
    extent = Extent(2, ("b", "a"), DAY, DAY + timedelta(hours=1))
    time = "event_time BETWEEN TIMESTAMP '2026-01-01 00:00:00.000000+00:00' AND TIMESTAMP '2026-01-01 01:00:00"
    assert extent.sql() == f"bucket IN ('a', 'b') AND {time}.000000+00:00'"
    assert extent.sql("t", {3, 1}) == f"t.bucket IN ('a', 'b') AND t.{time}.000000+00:00' AND t.shard IN (1, 3)"


@pytest.mark.parametrize(
    "extent", [Extent(0), Extent(0, ("a",), DAY, DAY), Extent(3, ("a",)), merge([]), merge([Extent(0)])]
)
def test_nothing_is_false(extent: Extent) -> None:
    assert extent.sql() == extent.sql("t", {1}) == "FALSE"


def test_many_buckets_are_a_range() -> None:
    names = tuple(f"b{n:04}" for n in range(501))
    assert "bucket IN" in Extent(1, names[:500], DAY, DAY).sql()
    assert Extent(1, names[::-1], DAY, DAY).sql("t").startswith("t.bucket BETWEEN 'b0000' AND 'b0500' AND ")


@given(MOMENTS, st.floats(0, 40 * 86_400), WIDTHS, st.floats(0, 1))
def test_spanning_holds_every_moment(low: datetime, seconds: float, width: int, part: float) -> None:
    high = low + timedelta(seconds=seconds)
    extent = spanning(7, low, high, width)
    assert (extent.rows, extent.low, extent.high) == (7, low, high)
    assert extent.wide == (len(extent.buckets) > 500)
    assert covers(extent, bucket(low, width))
    assert covers(extent, bucket(high, width))
    assert covers(extent, bucket(low + (high - low) * part, width))


@given(st.lists(st.tuples(st.integers(0, 3), MOMENTS, st.floats(0, 1e6)), max_size=5), WIDTHS)
def test_merge_holds_all(parts: list[tuple[int, datetime, float]], width: int) -> None:
    extents = [spanning(rows, low, low + timedelta(seconds=more), width) for rows, low, more in parts]
    whole = merge(extents)
    held = [extent for extent in extents if extent.rows]
    assert whole.rows == sum(extent.rows for extent in held)
    for extent in held:
        assert whole.low <= extent.low <= extent.high <= whole.high  # type: ignore[operator]
        assert all(covers(whole, name) for name in extent.buckets)
