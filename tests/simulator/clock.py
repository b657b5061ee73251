"""Simulated time: what the product gets where it asks for the time or sleeps. Set by the scheduler."""

from __future__ import annotations

from collections.abc import Callable

_now: list[Callable[[], float]] = [lambda: 0.0]
_sleep: list[Callable[[float], None]] = [lambda seconds: None]


def now() -> float:
    """Seconds since 1970, by the clock of the process that asks."""
    return _now[0]()


def sleep(seconds: float) -> None:
    """Let simulated seconds go by for the process that asks."""
    _sleep[0](seconds)


def install(reads: Callable[[], float], sleeps: Callable[[float], None]) -> None:
    """Hand the clock to a scheduler."""
    _now[0] = reads
    _sleep[0] = sleeps
