"""What a source's file says of CSV, checked."""

from __future__ import annotations


def separates(value: str) -> str:
    """A separator of fields. Errors: ValueError."""
    if not value.isascii() or value in '"\r\n\0':
        raise ValueError(f'{value!r} separates no fields; write one ASCII character such as ";" or "\\t"')
    return value


def distinct(value: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Names of columns. Errors: ValueError."""
    if value is not None and (not value or len(set(value)) < len(value) or not all(value)):
        raise ValueError("columns must be names that differ, one for each field of a line")
    return value
