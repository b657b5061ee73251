"""How one batch's budget is shared between files: a backlog oldest first, and fair to those that grow. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, inf

from clickjoin.model.split import Budget

# Estimates come from one block of a file, so records are counted wherever four times the estimate is too much.
DOUBT = 4
QUIET_SECONDS = 60.0  # without a write, and what a file holds is a backlog
WAVE_SECONDS = 300.0


@dataclass(frozen=True)
class Want:
    """What one file has to be read: bytes, mean bytes of a record, and whether it is all or nothing (a .gz).

    `wave`: 0 where it grows. What nobody has written to for a while is a backlog, and goes wave by wave: 1, 2, …
    """

    unread: int
    mean: float
    whole: bool = False
    wave: int = 0


@dataclass(frozen=True)
class FileShare:
    """What was taken of a file: bytes, records (estimated unless counted), and whether finished lines may be left."""

    length: int
    records: int
    more: bool


# (number of the file, bytes it may take, records it may take if they must be counted, take a record at any rate)
Cut = Callable[[int, int, int | None, bool], FileShare]


def waves(ages: Sequence[float]) -> list[int]:
    """The wave of each file, by the seconds since its last write: those rotated away at about the same time are one."""
    number, first, found = 0, inf, [0] * len(ages)
    for at in sorted(range(len(ages)), key=lambda at: -ages[at]):
        if ages[at] > QUIET_SECONDS:
            if first - ages[at] > WAVE_SECONDS:
                number, first = number + 1, ages[at]
            found[at] = number
    return found


def share(wants: Sequence[Want], budget: Budget) -> list[int]:
    """Bytes that each file (by wave, then oldest first) may take, within both limits by estimate.

    Each of n files that grow is sure of 1/n of the budget, of 1/(n + 1) beside a backlog. What is left goes to the
    backlog's waves, one after the other, then to those that grow; to all files of one alike, so that they are read in
    the order of their events, and a click not long before its query. What is whole gets all or nothing, and the oldest
    such file that does not fit is taken anyway, or it might wait indefinitely.
    """
    pot = _Pot(wants, budget)
    of_wave: dict[int, list[int]] = {0: []}
    for at, want in enumerate(wants):
        of_wave.setdefault(want.wave, []).append(at)
    growing = of_wave.pop(0)
    pot.give(growing, pot.left // max(len(growing) + bool(of_wave), 1))
    for _, files in sorted(of_wave.items()):
        pot.give_alike(files)
    pot.give_alike(growing)
    return _with_one_whole(wants, pot.rooms())


class _Pot:
    """A budget that is given out. One unit is 1 / (max_bytes * max_events) of it, so that all of this is exact."""

    def __init__(self, wants: Sequence[Want], budget: Budget) -> None:
        self._wants = wants
        self._costs = [max(budget.max_events, ceil(budget.max_bytes / max(want.mean, 1))) for want in wants]
        self._needs = [want.unread * cost for want, cost in zip(wants, self._costs, strict=True)]
        self._given = [0] * len(wants)
        self.left = budget.max_bytes * budget.max_events

    def give(self, files: Sequence[int], each: int) -> None:
        """To each as much as it needs, and there is; what is whole all or nothing."""
        for at in files:
            more = min(self._needs[at] - self._given[at], each, self.left)
            if not self._wants[at].whole or self._given[at] + more == self._needs[at]:
                self._given[at] += more
                self.left -= more

    def give_alike(self, files: Sequence[int]) -> None:
        """All that is left, in equal parts; what the smallest needs leave of theirs is shared by the others."""
        order = sorted(files, key=lambda at: self._needs[at] - self._given[at])
        for number, at in enumerate(order):
            self.give([at], self.left // (len(order) - number))
        self.give(files, self.left)

    def rooms(self) -> list[int]:
        """Bytes that each file was given."""
        return [units // cost for units, cost in zip(self._given, self._costs, strict=True)]


def _with_one_whole(wants: Sequence[Want], rooms: list[int]) -> list[int]:
    left = [at for at, want in enumerate(wants) if want.whole and rooms[at] < want.unread]
    if left:
        oldest = min(left, key=lambda at: wants[at].wave or inf)
        rooms[oldest] = wants[oldest].unread
    return rooms


def spend(wants: Sequence[Want], budget: Budget, cut: Cut) -> list[FileShare]:
    """Take from each file (by wave, then oldest first) what its share allows, with `cut`, which ends where a line does.

    What one file does not use (half a line) goes on to the next, so one with no line to give keeps nobody waiting. If
    not even one record fits, one is taken anyway: a batch always gets on, and goes over its limit by no more than
    that record (or one whole file).
    """
    rooms = share(wants, budget)
    # What one file leaves may go to the one with the shortest records, and one record may be taken beyond all room.
    expected = sum(rooms) / max(min((want.mean for want in wants), default=1), 1) + 1
    left = budget.max_events if expected * DOUBT > budget.max_events else None
    taken: list[FileShare] = []
    spare, got = 0, False
    for at, want in enumerate(wants):
        room = rooms[at] if want.whole else rooms[at] + spare
        if (room > 0 and left != 0) or not got:
            piece = cut(at, max(room, 0), left, not got)
        else:
            piece = FileShare(0, 0, True)
        spare += rooms[at] - piece.length
        left = None if left is None else max(left - piece.records, 0)
        got = got or piece.records > 0
        taken.append(piece)
    return taken
