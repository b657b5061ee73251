"""Cases that take minutes on real Delta: some in each run, all by `make matrix`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def some(cases: Sequence[T], every: int) -> Sequence[T]:
    """Each `every`th case, or all of them."""
    return cases if os.environ.get("CLICKJOIN_MATRIX") == "all" else cases[::every]
