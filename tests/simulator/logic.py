"""SQL's logic of three values, and its casts, over plain Python values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tests.simulator.values import micros


def both(x: Any, y: Any) -> Any:
    """AND."""
    if x is False or y is False:
        return False
    return None if x is None or y is None else True


def either(x: Any, y: Any) -> Any:
    """OR."""
    if x is True or y is True:
        return True
    return None if x is None or y is None else False


def times(x: Any, y: Any) -> Any:
    """A product; of a double and a decimal, a double."""
    return float(x) * float(y) if isinstance(x, float) or isinstance(y, float) else x * y


def caster(kind: str) -> Callable[[Any], Any]:
    """The function that casts to a type."""
    name = kind.lower().strip()
    if name.startswith("decimal"):
        scale = int(name.rstrip(")").split(",")[1]) if "," in name else 0
        return lambda x: Decimal(repr(x) if isinstance(x, float) else x).quantize(Decimal(1).scaleb(-scale))
    if name in ("bigint", "int", "long", "integer"):
        return lambda x: micros(x) // 1_000_000 if isinstance(x, datetime) else int(x)
    known: dict[str, Callable[[Any], Any]] = {
        "string": lambda x: str(x).lower() if isinstance(x, bool) else str(x),
        "double": float,
        "boolean": bool,
        "date": date.fromisoformat,
        "timestamp": lambda x: x if isinstance(x, datetime) else datetime.fromisoformat(x),
        "binary": lambda x: x if isinstance(x, bytes) else str(x).encode(),
    }
    return known[name]
