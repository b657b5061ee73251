"""Whether a partition's log is still the one that was read, by messages that were noted of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clickjoin.sources.kafka.marks import digest, marked, refuted
from clickjoin.sources.kafka.state import Place, Position

NAME, PLACE = "clicks", Place("cluster", "topic", 0)


@dataclass(frozen=True)
class Message:
    """A message as confluent-kafka gives it."""

    at: int
    text: bytes | None

    def offset(self) -> int:
        return self.at

    def timestamp(self) -> tuple[int, int]:
        return 1, 7

    def key(self) -> None:
        return None

    def value(self) -> bytes | None:
        return self.text


@dataclass
class Log:
    """One partition: what lies at each offset; None where nothing does, as after a transaction's end."""

    held: list[bytes | None]

    def peek(self, name: str, wanted: Mapping[int, tuple[int, int]]) -> dict[int, list[Any]]:
        """What is there of these offsets."""
        ((number, (start, end)),) = wanted.items()
        return {
            number: [Message(at, text) for at, text in enumerate(self.held) if text is not None and start <= at < end]
        }


def read(log: Log, steps: list[int]) -> Position:
    """A position after some batches, each up to an offset."""
    position = Position(PLACE, NAME, 0, 0, 0.0)
    for end in steps:
        (position,) = marked(log, NAME, [Position(PLACE, NAME, end, end, 0.0, marks=position.marks)])
    return Position.of(position.to_offset())


def logs(text: bytes) -> st.SearchStrategy[list[bytes | None]]:
    return st.lists(st.none() | st.just(text) | st.just(text + b"+"), max_size=40)


@given(logs(b"old"), logs(b"new"), st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(0, 40))
def test_a_log_is_read_again_from_before_where_it_differs(
    held: list[bytes | None], other: list[bytes | None], steps: list[int], kept: int
) -> None:
    steps = sorted(min(step, len(held)) for step in steps)
    position = read(Log(held), steps)
    now = [*held[:kept], *other]
    back, problems = refuted(Log(now), NAME, [position])
    assert len(back) == len(problems)
    if now[: position.next] == held[: position.next]:
        assert back == []
    if back:
        assert back[0].next <= min(kept, len(held))
        assert back[0].marks == tuple(mark for mark in position.marks if mark.offset < back[0].next)
    elif position.marks:
        # As far as the messages that were noted are there: the newest of them is the one that was read.
        there = [mark for mark in position.marks if mark.offset < len(now) and now[mark.offset] is not None]
        assert not there or digest(Message(there[0].offset, now[there[0].offset])) == there[0].digest


def test_few_marks_are_kept_of_many_batches() -> None:
    log = Log([b"%d" % n for n in range(5_000)])
    position = read(log, list(range(10, 5_001, 10)))
    assert position.marks[0].offset == 4_999
    assert len(position.marks) <= 8
    for lost in (4_995, 4_900, 4_800):
        ((back,), _) = refuted(Log([*log.held[:lost], *[b"new"] * 3_000]), NAME, [position])
        assert lost - 16 * (5_000 - lost) - 20 <= back.next <= lost


def test_a_topic_that_is_gone_gets_no_mark() -> None:
    gone = Position(PLACE, NAME, 5, 5, 0.0, state="gone")
    assert marked(Log([b"x"] * 9), NAME, [gone]) == [gone]
