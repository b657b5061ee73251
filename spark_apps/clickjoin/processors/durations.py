"""Durations as a pipeline's file writes them, for the arguments of processors."""

from __future__ import annotations

from clickjoin.model.errors import ConfigError
from clickjoin.model.ids import MICROS
from clickjoin.model.span import seconds_of


def microseconds(text: str, what: str) -> int:
    """A duration such as 10s or 1m, above 0. Errors: ConfigError that names the argument."""
    try:
        found = int(seconds_of(text) * MICROS)
    except ValueError as error:
        raise ConfigError(f"process.args.{what}: {error}") from error
    if found <= 0:
        raise ConfigError(f"process.args.{what}: {text!r} is no time at all", remedy="Write a duration such as 1m")
    return found
