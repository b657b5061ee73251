"""Hand-over: a process that is started before another one's lease is over takes its place between two batches.

The one that comes says in the journal that it is ready, once all is loaded and open. The one that goes plans no more
then, and returns when the other has planned. Nothing rests on it but time: a batch that both carry out is published
once.
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
_FRESH_SECONDS = 10.0


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
        """Say that this process is ready, and wait for the end of the batch that the one before has under way."""
        self._turn = self._journal.take_turn()
        time.sleep(_NOTICE_SECONDS)
        while self._is_under_way():
            time.sleep(_LOOK_SECONDS)
        self._end = time.monotonic() + self._lease

    def _is_under_way(self) -> bool:
        plan = self._dispatcher.unsettled()
        return plan is not None and self._dispatcher.age(plan) < _FRESH_SECONDS

    def is_over(self) -> bool:
        """Whether to return now: the next process has planned; or the lease is over, and none came or it has no work.

        Where the next one is ready and has not planned yet, this stands by for some seconds first.
        """
        if time.monotonic() >= self._end + self._patience:
            return True
        if self._journal.turn() <= self._turn:
            return False
        return self._stand_by() or time.monotonic() >= self._end

    def _stand_by(self) -> bool:
        """Wait for the next process's first plan, once: it may have been killed. Whether it has planned."""
        until = 0.0 if self._stood_by else time.monotonic() + STAND_BY_SECONDS
        self._stood_by = True
        while not (planned := self._journal.planned() > self._dispatcher.written) and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        return planned
