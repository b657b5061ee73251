"""Rows whose texts are too long for one column of Arrow are worked on in parts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from clickjoin.kernel.adapter import AdapterFault
from clickjoin.kernel.arrays import in_halves

GB = 1 << 30


@pytest.fixture(scope="module")
def long() -> pa.Table:
    """Four texts of 1 GB, none of whose bytes is ever looked at."""
    data = pa.py_buffer(np.zeros(GB, np.uint8))
    text = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(np.array([0, GB], np.int32)), data])
    return pa.table({"text": pa.chunked_array([text] * 4)})


def whole(rows: pa.Table) -> int:
    """Rows whose texts are one array."""
    return len(pa.concat_arrays(rows["text"].chunks))


def test_texts_of_over_2_gb_are_taken_in_parts(long: pa.Table) -> None:
    with pytest.raises(pa.ArrowInvalid):
        whole(long)
    assert in_halves(whole, long) == [1, 1, 1, 1]
    assert in_halves(whole, long.slice(0, 1)) == [1]


def test_so_are_those_that_an_adapter_cannot_put_together(long: pa.Table) -> None:
    def adapted(rows: pa.Table) -> int:
        try:
            return whole(rows)
        except pa.ArrowInvalid as error:
            raise AdapterFault("raised ArrowInvalid") from error

    assert in_halves(adapted, long.slice(0, 3)) == [1, 1, 1]


def test_other_errors_are_no_reason_to_try_again(long: pa.Table) -> None:
    tried = []

    def fails(rows: pa.Table) -> None:
        tried.append(rows.num_rows)
        raise pa.ArrowInvalid("Could not convert 'x' to int64")

    with pytest.raises(pa.ArrowInvalid):
        in_halves(fails, long)
    assert tried == [4]
