"""Paths of values inside a JSON record, and the columns that hold such values.

A path is written `meta.ids[0]`, and "`a.b`.c" where a key itself holds a dot.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from clickjoin.model.errors import ConfigError

FieldPath = tuple[str | int, ...]
_QUOTED = r"`(?:[^`]|``)+`"
_STEP = re.compile(rf"(?P<key>{_QUOTED}|[^.`\[\]]+)|\[(?P<index>[0-9]{{1,9}})\]")
_BARE = re.compile(r"[^.`\[\]]+")
_FORM = "Write keys with dots between, [n] for an element of an array, and backticks around a key that holds . [ ] or `"


def parse_path(text: str) -> FieldPath:
    """The keys (str) and indexes (int, from 0) that lead to a value; a backtick inside backticks is doubled.

    Errors: ConfigError that says what is wrong, and where.
    """
    steps: list[str | int] = []
    at = 0
    while at < len(text) or not steps:
        wants_key = not steps or text[at] == "."
        start = at + (1 if steps and wants_key else 0)
        found = _STEP.match(text, start)
        if found is None or (found["key"] is not None) != wants_key:
            raise ConfigError(f"path {text!r}: {_wrong(text, start, wants_key)}", remedy=_FORM)
        steps.append(_key(found["key"]) if wants_key else int(found["index"]))
        at = found.end()
    return tuple(steps)


def _key(text: str) -> str:
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def _wrong(text: str, at: int, wants_key: bool) -> str:
    if not text:
        return "it is empty"
    if at == len(text):
        return "it ends with a dot"
    if text[at] == "`" and wants_key:
        return f"the backtick at character {at + 1} opens no key that another one closes"
    what = "a key" if wants_key else "a dot, an index such as [0], or the end"
    return f"{what} was expected at character {at + 1}, not {text[at]!r}"


def path_text(path: FieldPath) -> str:
    """A path as `parse_path` reads it."""
    parts = [f"[{step}]" if isinstance(step, int) else f".{_quoted(step)}" for step in path]
    return "".join(parts).removeprefix(".")


def _quoted(key: str) -> str:
    return key if _BARE.fullmatch(key) else "`" + key.replace("`", "``") + "`"


class TypedColumn(NamedTuple):
    """Its name, where its value is (stream foreign | primary, path in that record), its Spark SQL type.

    `default`: what it holds where a record has no value there, as JSON; None: null.
    """

    name: str
    stream: str
    path: FieldPath
    type: str
    default: str | None = None

    @property
    def source(self) -> str:
        """Where its value is, as the pipeline's file names it."""
        return path_text((self.stream, *self.path))
