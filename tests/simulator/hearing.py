"""Whoever has committed says so, whatever was heard: nobody takes its own commit for another's."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from greenlet import getcurrent

from tests.simulator import rust
from tests.simulator.world import Violation

_SMALL = ("append_table", "add", "append_next")  # answer False where another came first
_LARGE = ("rewrite",)  # answer None


def watch() -> None:
    """Check what the product's writers answer."""
    from clickjoin.engines.arrow import ArrowLake, ArrowTables
    from clickjoin.lake.table_version import TableVersion

    for kind, names, no in (
        (ArrowTables, _SMALL, False),
        (TableVersion, ("commit_next",), False),
        (ArrowLake, _LARGE, None),
    ):
        for name in names:
            setattr(kind, name, _checked(getattr(kind, name), no))


def _checked(call: Callable[..., Any], no: bool | None) -> Callable[..., Any]:
    @wraps(call)
    def checked(*args: Any, **more: Any) -> Any:
        heard, me = rust.lake().misheard, getcurrent()
        before = heard[me]
        answer = call(*args, **more)
        if answer is no and heard[me] > before:
            raise Violation(f"own commit taken for another's: {call.__name__} answers {no} for a commit that landed")
        return answer

    return checked
