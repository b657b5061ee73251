"""Cases that take minutes on real Delta: some in each run, all by `make matrix`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")
# A case that is left to the targets that run all of them.
in_full = pytest.mark.skipif(os.environ.get("CLICKJOIN_MATRIX") != "all", reason="left to make kafka-test")


def some(cases: Sequence[T], every: int) -> Sequence[T]:
    """Each `every`th case, or all of them."""
    return cases if os.environ.get("CLICKJOIN_MATRIX") == "all" else cases[::every]
