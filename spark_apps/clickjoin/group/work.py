"""The rounds of a group's members on threads of one process, until each one's work is over."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

from clickjoin.group.slots import Slots
from clickjoin.rounds import Round

if TYPE_CHECKING:
    from clickjoin.group.member import Member

_MOST_SLOTS = 8
_LONGEST_REST = 5.0  # seconds between two looks of a quiet member: a disk that was slow once may be fast again
_Ended = tuple["Member", Round | None, BaseException | None]


def slots_for(cores: int | None) -> int:
    """How many members work at a time: one more than compute, for each waits for disk or store now and then."""
    return min(max(cores or 1, 2) + 1, _MOST_SLOTS)


def work(members: Sequence[Member], most: int = 0) -> None:
    """Work through the members' rounds, `most` at a time (0: as the machine's cores say).

    Errors: the first that ends the work of all, such as a lost Spark server; what is under way is given up then.
    """
    slots, ended = Slots(members, most or slots_for(os.cpu_count())), SimpleQueue[_Ended]()
    try:
        while slots:
            while (member := slots.begin(time.monotonic())) is not None:
                # A daemon: where the task is asked to end, nothing waits for a source that hangs.
                Thread(target=_round, args=(member, ended), name=member.pipeline.pipeline, daemon=True).start()
            try:
                _take(slots, ended.get(timeout=slots.wait(time.monotonic())), len(members))
            except Empty:
                now = time.monotonic()
                for member in [member for member, since in slots.stuck(now) if member.give_up(now - since)]:
                    slots.leave(member)
    except BaseException:
        for member in members:
            Thread(target=member.close, kwargs={"interrupted": True}, daemon=True).start()
        raise


def _round(member: Member, ended: SimpleQueue[_Ended]) -> None:
    try:
        found = member.round()
        if found is None:
            member.close()
    except BaseException as error:
        ended.put((member, None, error))
    else:
        ended.put((member, found, None))


def _take(slots: Slots[Member], item: _Ended, count: int) -> None:
    member, found, error = item
    if member not in slots:  # it was given up, and has ended after all
        return
    if error is not None:
        raise error
    if found is None:
        slots.leave(member)
        return
    due = found.due
    if not found.worked:  # looks of many quiet members must not add up to work
        due = max(due, time.monotonic() + min(2 * count * found.seconds, _LONGEST_REST))
    slots.end(member, due, behind=found.behind)
