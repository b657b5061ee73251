"""Hand-over: a process that is started before another one's lease is over takes its place between two batches.

The one that comes says in the journal that it is ready, once all is loaded and open; the one that goes plans no more
then. When its last batch is settled the other says that it begins, and it returns. Nothing rests on it but time: a
batch that both carry out is published once.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clickjoin.dispatcher.dispatcher import Dispatcher

STAND_BY_SECONDS = 5.0
_LOOK_SECONDS = 0.05
# A process that looked just before another was ready has written its plan by then.
_NOTICE_SECONDS = 0.1
# A batch under way that is older may be a killed process's: it is carried through, as after any crash.
_FRESH_SECONDS = 20.0


class HandOver:
    """One process's turn on a sequence. `patience`: seconds after its lease in which it waits for the next process."""

    def __init__(self, dispatcher: Dispatcher, lease: float, patience: float) -> None:
        self._dispatcher, self._journal = dispatcher, dispatcher.journal
        self._lease, self._patience = lease, patience
        self._turn, self._end = 0, 0.0
        self._stood_by = False

    @property
    def seconds(self) -> float:
        """How long the turn is at most."""
        return self._lease + self._patience

    def take_over(self) -> None:
        """Say that this process is ready, wait for the batch that the one before has under way, and begin."""
        self._turn = self._journal.take_turn()
        self._wait_for_batch()
        self._journal.begin_turn(self._turn)
        self._wait_for_batch()  # of one that did not stand by for long enough
        self._end = time.monotonic() + self._lease

    def carry_on(self, dispatcher: Dispatcher) -> None:
        """Go on in this turn with what was opened again."""
        self._dispatcher, self._journal = dispatcher, dispatcher.journal

    def _wait_for_batch(self) -> None:
        time.sleep(_NOTICE_SECONDS)
        while self._is_under_way():
            time.sleep(_LOOK_SECONDS)

    def _is_under_way(self) -> bool:
        plan = self._dispatcher.unsettled()
        return plan is not None and self._dispatcher.age(plan) < _FRESH_SECONDS

    def is_over(self) -> bool:
        """Whether to return now: a later process has begun, or none has for too long after the lease.

        Where one is ready and has not begun yet, this stands by for some seconds, once: it may have been killed.
        """
        if time.monotonic() >= self._end + self._patience or self._is_followed():
            return True
        if self._stood_by or self._journal.turn() <= self._turn:
            return False
        self._stood_by, until = True, time.monotonic() + STAND_BY_SECONDS
        while not (followed := self._is_followed()) and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        return followed

    def _is_followed(self) -> bool:
        return self._journal.begun() > self._turn
