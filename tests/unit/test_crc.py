"""CRC-32 of columns against zlib, text by text."""

from __future__ import annotations

import zlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.kernel.event_key import crcs_of

_TEXTS = st.lists(st.text(st.characters(exclude_categories=("Cs",)), max_size=40), max_size=30)


def of(texts: list[str]) -> list[int]:
    return [zlib.crc32(text.encode()) for text in texts]


@given(st.lists(_TEXTS, max_size=3), st.integers(0, 3))
def test_as_zlib(chunks: list[list[str]], skipped: int) -> None:
    sliced = [pa.array([*"abc"[:skipped], *texts], pa.string()).slice(skipped) for texts in chunks]
    whole = [text for texts in chunks for text in texts]
    assert crcs_of(pa.chunked_array(sliced, pa.string())).tolist() == of(whole)


@pytest.mark.parametrize("length", [1, 4, 200])
def test_more_than_a_block(length: int) -> None:
    texts = [f"{number}".rjust(length + number % 3, "é") for number in range(20_000)]
    assert crcs_of(pa.chunked_array([pa.array(texts)])).tolist() == of(texts)
