"""Rows by partition: each code's rows in their order, long runs without naming each row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.kernel import data_file
from clickjoin.kernel.data_file import pieces_by_code

runs = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 12)), min_size=1, max_size=30)


@given(runs, st.integers(1, 12))
def test_each_row_once_and_in_order(given_: list[tuple[int, int]], long: int) -> None:
    codes = np.array([code for code, length in given_ for _ in range(length)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_file, "_LONG_RUN", long)
        found = list(pieces_by_code(codes))
    assert [[int(row) for piece in pieces for row in piece] for pieces in found] == [
        np.flatnonzero(codes == code).tolist() for code in np.unique(codes)
    ]
    assert all(len(piece) >= long for pieces in found for piece in pieces if isinstance(piece, range))


def test_of_a_log_that_is_about_in_order_few_rows_are_named() -> None:
    codes = np.repeat(np.arange(10), 5_000)
    codes[4_990:5_010:2] = 2
    named = [piece for pieces in pieces_by_code(codes) for piece in pieces if not isinstance(piece, range)]
    assert sum(map(len, named)) < 30
