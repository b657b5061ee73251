"""Numbers as a browser can read them: its own hold 53 bits, and ids and exact columns may have more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

_MOST = 2**53


def exact(data: Any) -> Any:
    """Plain data, with text in the place of each number that a browser would round, or that JSON has no word for."""
    if isinstance(data, Mapping):
        return {name: exact(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [exact(value) for value in data]
    if isinstance(data, int) and not isinstance(data, bool) and abs(data) > _MOST:
        return str(data)
    if isinstance(data, Decimal) or (isinstance(data, float) and not math.isfinite(data)):
        return str(data)
    return data
