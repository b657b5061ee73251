"""Whose round is next: members of a group in the order in which they fall due, so many at a time."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)
# Seconds after which a round counts no more: a source that hangs must not hold up all others. One that catches up may
# take long.
STUCK, STUCK_BEHIND = 30.0, 600.0
_LONGEST_WAIT = 1.0


@dataclass
class _State:
    due: float = 0.0
    behind: bool = True  # nobody knows what a new one finds
    begun: float | None = None

    def is_stuck(self, now: float) -> bool:
        """Whether its round has taken so long that nobody waits for it."""
        return self.begun is not None and now - self.begun >= (STUCK_BEHIND if self.behind else STUCK)


class Slots(Generic[T]):
    """At most `most` rounds at a time; of members that are behind no more than half, while others are not.

    All times are seconds of one clock that never goes back.
    """

    def __init__(self, members: Iterable[T], most: int) -> None:
        self._states = {member: _State() for member in members}
        self._most = most

    def __bool__(self) -> bool:
        """Whether there is still someone to work for."""
        return bool(self._states)

    def begin(self, now: float) -> T | None:
        """The member that begins a round now; None where none is due, or all slots are taken."""
        may_be_behind = self._free_behind(now)
        if self._taken(now) >= self._most:
            return None
        waiting = [item for item in self._states.items() if item[1].begun is None and item[1].due <= now]
        for member, state in sorted(waiting, key=lambda item: item[1].due):
            if may_be_behind or not state.behind:
                state.begun = now
                return member
        return None

    def __contains__(self, member: T) -> bool:
        """Whether it still works."""
        return member in self._states

    def stuck(self, now: float) -> list[tuple[T, float]]:
        """Members whose round counts no more, and when it began."""
        return [
            (member, state.begun)
            for member, state in self._states.items()
            if state.begun is not None and state.is_stuck(now)
        ]

    def end(self, member: T, due: float, *, behind: bool) -> None:
        """A member's round has ended; its next one may begin when it falls due."""
        self._states[member] = _State(due, behind)

    def leave(self, member: T) -> None:
        """A member is stopped."""
        del self._states[member]

    def wait(self, now: float) -> float:
        """Seconds after which to look again, at the latest."""
        dues = [state.due for state in self._states.values() if state.begun is None and state.due > now]
        return min([due - now for due in dues] + [_LONGEST_WAIT])

    def _taken(self, now: float, behind: bool | None = None) -> int:
        return sum(
            state.begun is not None and not state.is_stuck(now) and behind in (None, state.behind)
            for state in self._states.values()
        )

    def _free_behind(self, now: float) -> bool:
        all_behind = all(state.behind for state in self._states.values())
        return all_behind or self._taken(now, behind=True) < max(self._most // 2, 1)
