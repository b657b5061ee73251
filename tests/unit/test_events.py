"""Event ids and their time; buckets sort as times do; the hash under every shard."""

from __future__ import annotations

import uuid
import zlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.model.ids import MICROS, bucket_of, crc_of, embedded_micros, moment, uuid7_micros

WIDTHS = st.sampled_from([60, 300, 900, 3600, 7200, 43_200, 86_400])
MOMENTS = st.integers(0, int(datetime(2200, 1, 1, tzinfo=UTC).timestamp()) * MICROS)


@given(st.text(st.characters(exclude_characters=":"), min_size=1), st.integers(0), st.integers(0, 10**18 - 1))
def test_embedded(host: str, process: int, micros: int) -> None:
    assert embedded_micros(f"{host}:{process}:{micros}") == micros


@pytest.mark.parametrize(
    "text",
    ["", "a", "a:1", ":1:1", "a::1", "a:1:", "a:b:1", "a:1:x", "a:1:-1", "a:1:1 ", "a:1:1\n", "a:1:1.5", "::1:1:1"],
)
def test_no_embedded_time(text: str) -> None:
    assert embedded_micros(text) is None


def test_embedded_time_has_18_digits_at_most() -> None:
    assert embedded_micros("a:1:" + "9" * 18) == 10**18 - 1
    assert embedded_micros("a:1:" + "9" * 19) is None
    assert embedded_micros("a:1:١") is None  # a digit, and none of ASCII's


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**12 - 1), st.integers(0, 2**62 - 1), st.booleans())
def test_uuid7(millis: int, a: int, b: int, upper: bool) -> None:
    text = str(uuid.UUID(int=millis << 80 | 7 << 76 | a << 64 | 2 << 62 | b))
    assert uuid7_micros(text.upper() if upper else text) == millis * 1000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0190163d-8694-4f5b-8c5e-4d2b6d1f0a01",  # version 4
        "0190163d-8694-7f5b-7c5e-4d2b6d1f0a01",  # variant
        "0190163d86947f5b8c5e4d2b6d1f0a01",
        "{0190163d-8694-7f5b-8c5e-4d2b6d1f0a01}",
        "0190163d-8694-7f5b-8c5e-4d2b6d1f0a01\n",
        "0190163g-8694-7f5b-8c5e-4d2b6d1f0a01",
    ],
)
def test_no_uuid7(text: str) -> None:
    assert uuid7_micros(text) is None


@pytest.mark.parametrize(
    ("at", "width", "name"),
    [
        ("2019-11-24T03:59:59.999999", 3600, "2019-11-24T0300Z"),
        ("2019-11-24T04:00:00", 3600, "2019-11-24T0400Z"),
        ("2019-11-24T03:44:59", 900, "2019-11-24T0330Z"),
        ("2019-11-24T23:59:59", 86_400, "2019-11-24T0000Z"),
        ("1969-12-31T23:59:59", 3600, "1969-12-31T2300Z"),
    ],
)
def test_bucket(at: str, width: int, name: str) -> None:
    assert bucket_of(round(datetime.fromisoformat(at + "+00:00").timestamp() * MICROS), width) == name


@given(MOMENTS, MOMENTS, WIDTHS)
def test_buckets_sort_as_times(one: int, other: int, width: int) -> None:
    low, high = sorted((one, other))
    assert bucket_of(low, width) <= bucket_of(high, width)
    assert (bucket_of(low, width) == bucket_of(high, width)) == (low // (width * MICROS) == high // (width * MICROS))


@given(MOMENTS, WIDTHS)
def test_bucket_is_its_start(micros: int, width: int) -> None:
    name = bucket_of(micros, width)
    start = datetime.strptime(name, "%Y-%m-%dT%H%MZ").replace(tzinfo=UTC)
    assert 0 <= micros - int(start.timestamp()) * MICROS < width * MICROS
    assert not set(name) & set(" %:/?#=\\'\"")


@given(MOMENTS)
def test_moment_is_exact(micros: int) -> None:
    at = moment(micros)
    assert at.utcoffset().total_seconds() == 0  # type: ignore[union-attr]
    assert int(at.replace(microsecond=0).timestamp()) * MICROS + at.microsecond == micros


@given(st.text())
def test_crc(text: str) -> None:
    assert crc_of(text) == zlib.crc32(text.encode()) >= 0


def test_crc_is_the_known_one() -> None:
    assert crc_of("123456789") == 0xCBF43926
