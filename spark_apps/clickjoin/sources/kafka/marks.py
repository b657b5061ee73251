"""Whether a partition's log is the one that was read: digests of some messages that were planned, compared again.

Brokers that come back with older data, and grow past where a batch was planned to, show no offset that is wrong.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from clickjoin.model.split import Problem
from clickjoin.sources.kafka.state import Mark, Position, path_of

_BACK = 10  # offsets before an end among which a message is looked for: others are of transactions, or compacted
_ORDER = 4  # distances up to sixteen times as far are of one order


class Peeks(Protocol):
    """A connection that gives single messages."""

    def peek(self, name: str, wanted: Mapping[int, tuple[int, int]]) -> dict[int, list[Any]]:
        """The messages of offsets [start, end) of some partitions that are there."""
        ...


def digest(message: Any) -> str:
    """What a message is known by."""
    value = hashlib.blake2b(repr(message.timestamp()).encode(), digest_size=6)
    for part in (message.key(), message.value()):
        value.update(b"-" if part is None else b"%d:" % len(part) + part)
    return value.hexdigest()


def refuted(connection: Peeks, name: str, known: Iterable[Position]) -> tuple[list[Position], list[Problem]]:
    """Positions whose logs hold other messages than were read, back to where they agree, and what to say of it.

    A message that is not there any more (retention, compaction) proves nothing: an older one is asked. Errors: those of
    `peek`.
    """
    left = {position.place.number: (position, position.marks) for position in known if position.marks}
    wrong: dict[int, Mark] = {}
    back: list[Position] = []
    while left:
        found = connection.peek(
            name, {number: (marks[0].offset, marks[0].offset + 1) for number, (_, marks) in left.items()}
        )
        for number, (position, marks) in list(left.items()):
            there = [message for message in found.get(number, []) if message.offset() == marks[0].offset]
            agrees = bool(there) and digest(there[0]) == marks[0].digest
            if there and not agrees:
                wrong.setdefault(number, marks[0])
            if number in wrong and (agrees or len(marks) == 1):
                begin = marks[0].offset + 1 if agrees else 0
                back.append(replace(position, next=begin, marks=marks if agrees else ()))
            if agrees or len(marks) == 1:
                del left[number]
            else:
                left[number] = (position, marks[1:])
    return back, [_problem(name, position, wrong[position.place.number]) for position in back]


def _problem(name: str, back: Position, wrong: Mark) -> Problem:
    path = path_of(name, back.place.number)
    since = f"from offset {back.next} on, up to which it is the same" if back.next else "from its beginning"
    detail = (
        f"{path}: the message at offset {wrong.offset} is not the one that was read: brokers have come back with older "
        f"data, and taken in more. It is read again {since}; what repeats drops out"
    )
    return Problem("rewritten", path, detail, back.next, wrong.offset + 1 - back.next)


def marked(connection: Peeks, name: str, moved: Sequence[Position]) -> list[Position]:
    """Positions with a mark of the last message before each. Errors: those of `peek`."""
    live = [position for position in moved if position.state == "live" and position.next]
    places = {one.place.number: (max(one.next - _BACK, 0), one.next) for one in live}
    found = connection.peek(name, places) if places else {}
    return [_with(one, found.get(one.place.number, [])) if one in live else one for one in moved]


def _with(position: Position, messages: Sequence[Any]) -> Position:
    if not messages:
        return position
    last = messages[-1]
    older = [mark for mark in position.marks if mark.offset < last.offset()]
    return replace(position, marks=_sparse([Mark(last.offset(), digest(last)), *older]))


def _sparse(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Few marks, and one never much further behind than another place that is lost: two for each order of distance."""
    by_distance: dict[int, list[Mark]] = {}
    for mark in marks:
        by_distance.setdefault((marks[0].offset - mark.offset).bit_length() // _ORDER, []).append(mark)
    return tuple(mark for some in by_distance.values() for mark in dict.fromkeys((some[0], some[-1])))
