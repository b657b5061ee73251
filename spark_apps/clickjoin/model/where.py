"""Which records of a log belong to a stream, where one log holds several kinds of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

Scalar = str | bool | int | float


class Condition(NamedTuple):
    """A record's value at a path is one of some texts (None: it has none), or is none of them where not `inside`."""

    path: str
    values: tuple[str | None, ...]
    inside: bool = True

    def __str__(self) -> str:
        named = ", ".join(json.dumps(value) for value in self.values)
        if self.values == (None,):
            return f"{self.path} is missing" if self.inside else f"{self.path} exists"
        return f"{self.path} {'is' if self.inside else 'is not'} {named}"


class Where(NamedTuple):
    """Conditions on the records of a stream, all of which hold.

    `theirs`: those of the other stream, where both read one log; else None. `quiet`: that one quarantines what is
    broken, and counts what neither takes.
    """

    mine: tuple[Condition, ...]
    theirs: tuple[Condition, ...] | None = None
    quiet: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """Of all values that are looked at."""
        return tuple(dict.fromkeys(one.path for one in (*self.mine, *(self.theirs or ()))))


def text_of(value: Any) -> str | None:
    """A value as conditions compare it: texts as they stand, true, false and numbers as JSON writes them.

    Numbers that are equal have one text (1, 1.0 and 1e0). None and an empty text are no value.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return str(value) or None if isinstance(value, str | int) else None


def in_words(conditions: Iterable[Condition]) -> str:
    """Some conditions, for people; a lake keeps it."""
    return " and ".join(map(str, conditions))
