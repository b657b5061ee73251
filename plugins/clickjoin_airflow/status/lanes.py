"""Threads of the page's own for what it reads from lakes: a disk that hangs holds up its own pipeline, and no other.

Airflow's API serves all that it has from one pool of threads. A read that never ends must not take one of those, nor
wait for one: each pipeline has a lane, which is one thread and a short queue.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any, TypeVar

from clickjoin.model.errors import ClickjoinError

T = TypeVar("T")
Item = tuple["Future[Any]", Callable[[], Any]]
# Seconds that an answer is waited for; a read goes on for as long as it takes, and what it found is kept.
PATIENCE = 20.0
# Requests that may wait in a lane: what one page asks for at once, twice.
QUEUE = 16
# Lanes at work at a time: threads that hanging disks can take in all.
MOST = 8
REMEDY = "Look whether the disk hangs where Airflow's API server runs; the page asks again by itself"


class Busy(ClickjoinError):
    """What was asked for cannot be read now: its disk hangs, or too many ask at once."""


@dataclass
class _Lane:
    waiting: deque[Item] = field(default_factory=deque)
    since: float | None = None  # when the read that is under way was begun


class Lanes:
    """Runs reads on threads of its own, one a lane; `patience` in seconds."""

    def __init__(self, patience: float = PATIENCE, queue: int = QUEUE, most: int = MOST) -> None:
        self.patience, self._queue, self._most = patience, queue, most
        self._lanes: dict[str, _Lane] = {}  # those that have a thread
        self._lock = Lock()

    async def run(self, lane: str, what: str, read: Callable[[], T]) -> T:
        """What `read` returns. Errors: Busy where the lane of `what` hangs, is full, or does not answer in time."""
        future = self.submit(lane, what, read)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.patience)
        except TimeoutError as error:
            if future.done() and not future.cancelled():
                raise  # its own: a read that has failed
            raise Busy(f"{what}: no answer within {self.patience:g} s", remedy=REMEDY) from error

    def submit(self, lane: str, what: str, read: Callable[[], T]) -> Future[T]:
        """Have it read when the lane comes to it. Errors: Busy."""
        future: Future[T] = Future()
        with self._lock:
            known = self._lanes.get(lane)
            if known is None:
                if len(self._lanes) >= self._most:
                    raise Busy(f"{what}: {self._most} other reads are under way", remedy=REMEDY)
                known = self._lanes[lane] = _Lane()
                Thread(target=self._work, args=(lane, known), name=f"clickjoin-{lane}", daemon=True).start()
            elif known.since is not None and (lasts := time.monotonic() - known.since) > self.patience:
                raise Busy(f"{what}: has been read for {lasts:.0f} s without an end", remedy=REMEDY)
            elif len(known.waiting) >= self._queue:
                raise Busy(f"{what}: {self._queue} requests wait already", remedy=REMEDY)
            known.waiting.append((future, read))
        return future

    def _work(self, name: str, lane: _Lane) -> None:
        while item := self._next(name, lane):
            future, read = item
            if not future.set_running_or_notify_cancel():
                continue  # nobody waits for it any more
            try:
                future.set_result(read())
            except BaseException as error:
                future.set_exception(error)

    def _next(self, name: str, lane: _Lane) -> Item | None:
        """The next read of a lane; a lane that has none gives its thread up."""
        with self._lock:
            if not lane.waiting:
                del self._lanes[name]
                return None
            lane.since = time.monotonic()
            return lane.waiting.popleft()
