"""Cases that take minutes on real Delta: some in each run, all by `make matrix` and the targets beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import product
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
_ASKED = os.environ.get("CLICKJOIN_MATRIX", "")  # all; or long: every test, and some cases of each
FULL, LONG = _ASKED == "all", _ASKED in ("all", "long")
# A test that is left to the targets that run all of them.
in_full = pytest.mark.skipif(not LONG, reason="left to make matrix, s3-test or kafka-test")


def some(cases: Sequence[T], every: int) -> Sequence[T]:
    """Each `every`th case, or all of them."""
    return cases if FULL else cases[::every]


def crossed(*lists: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Every combination of one value of each list by `make matrix`; else so many that each value is in one of them."""
    if FULL:
        return list(product(*lists))
    return [tuple(values[at % len(values)] for values in lists) for at in range(max(map(len, lists)))]
