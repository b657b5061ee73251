"""What a request names: conditions on values of records, and ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from clickjoin.kernel.typed_columns.by_line import matcher
from clickjoin.model.errors import ConfigError
from clickjoin.model.field_path import FieldPath, parse_path

_FORM = "Write STREAM.PATH=VALUE, such as foreign.user_id=U17, primary.user.id=17 or joined.foreign.user_id=U17"
_WHERE = ("primary", "foreign", "joined")
_OF_ONE_STREAM = {"stream": "foreign", "deduplicated": "joined"}  # how a pipeline of one stream calls them


@dataclass(frozen=True)
class Condition:
    """A value at a path of the records of a stream, or of a column of `joined`, as text."""

    stream: str
    path: FieldPath
    value: str

    @property
    def column(self) -> str:
        """The column that holds it."""
        return str(self.path[0]) if self.stream == "joined" else "payload"

    @property
    def test(self) -> Callable[[str | None], bool]:
        """Whether a text of that column holds it."""
        return matcher(self.path[1:] if self.stream == "joined" else self.path, self.value)


@dataclass(frozen=True)
class Wanted:
    """Events that fulfil one of the conditions, or have one of the ids."""

    conditions: tuple[Condition, ...] = ()
    ids: frozenset[str] = frozenset()

    def words(self, stream: str) -> frozenset[str]:
        """What a bad record of a stream, in which no path can be followed, is searched for."""
        return self.ids | {one.value for one in self.conditions if one.stream == stream}


def parse(where: Iterable[str], ids: str | None) -> Wanted:
    """A request. Errors: ConfigError for what names nothing, or a file of ids that cannot be read."""
    wanted = Wanted(tuple(_condition(text) for text in where), _ids(ids) if ids else frozenset())
    if ids and not wanted.ids:
        raise ConfigError(f"{ids}: names no id", remedy="Write one id a line")
    return wanted


def _condition(text: str) -> Condition:
    place, equals, value = text.partition("=")
    stream, dot, path = place.strip().replace(" ", ".", 1).partition(".")
    stream = _OF_ONE_STREAM.get(stream, stream)
    if not (equals and dot and value) or stream not in _WHERE:
        raise ConfigError(f"--where {place}{equals}…: is no condition", remedy=_FORM)
    steps = parse_path(path)
    if stream == "joined" and not isinstance(steps[0], str):
        raise ConfigError(f"--where {place}: names no column", remedy=_FORM)
    return Condition(stream, steps, value)


def _ids(file: str) -> frozenset[str]:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read ({error})", remedy="Give a file of ids, one a line") from error
    return frozenset(line.strip() for line in text.splitlines() if line.strip())


def word(values: Iterable[str]) -> str:
    """A regular expression for texts that hold one of some values as a whole, not within a longer one."""
    either = "|".join(re.escape(value) for value in sorted(values))
    return rf"(?:^|[^\w.:-])(?:{either})(?:$|[^\w.:-])"
