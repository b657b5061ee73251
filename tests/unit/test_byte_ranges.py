"""Bytes of a file by their places: each as it lies there, near ones by one read, far ones of a store side by side."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.kernel import byte_ranges
from clickjoin.kernel.byte_ranges import ByteRanges

DATA = bytes(range(256)) * 4


class Noted:
    """A file that notes what is read of it; with `together`, no read ends before so many have begun."""

    def __init__(self, together: int = 0) -> None:
        self.reads: list[tuple[int, int]] = []
        self._met = threading.Barrier(together) if together else None

    def read_at(self, size: int, start: int) -> bytes:
        self.reads.append((start, size))
        if self._met:
            self._met.wait(timeout=10)
        return DATA[start : start + size]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), max_size=12), st.randoms(), st.booleans())
def test_each_place_is_read_as_it_lies(holes: list[tuple[int, int]], random: Any, remote: bool) -> None:
    places, at = [], 0
    for hole, size in holes:
        places.append((at + hole, size))
        at += hole + size
    random.shuffle(places)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(byte_ranges, "_GAP", 20)
        file = ByteRanges(pa.BufferReader(DATA), remote=remote)
        found = file.read(np.array(places, np.int64).reshape(-1, 2))
    assert [bytes(part) for part in found] == [DATA[start : start + size] for start, size in places]


@pytest.mark.parametrize(("remote", "reads"), [(False, [(0, 20), (30, 10), (61, 5)]), (True, [(0, 40), (61, 5)])])
def test_near_places_are_one_read(remote: bool, reads: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_ranges, "_GAP", 20)
    file = Noted()
    ByteRanges(file, remote=remote).read(np.array([(30, 10), (0, 10), (10, 10), (61, 5)]))  # type: ignore[arg-type]
    assert sorted(file.reads) == reads


def test_a_store_is_asked_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_ranges, "_GAP", 0)
    places = np.array([(at, 1) for at in range(0, 160, 10)])
    found = ByteRanges(Noted(together=16), remote=True).read(places)  # type: ignore[arg-type]
    assert [part[0] for part in found] == list(range(0, 160, 10))
