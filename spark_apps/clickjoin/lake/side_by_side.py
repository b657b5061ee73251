"""Requests that do not depend on one another, sent at the same time: a far store answers each after tens of ms."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")
_WORKERS = 32  # of a process
_inside = threading.local()
_pools: dict[int, ThreadPoolExecutor] = {}


def each(do: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """What a function returns for each item. Errors: the first one's, once all have ended."""
    if len(items) <= 1 or getattr(_inside, "is_worker", False):  # workers that waited for one another could use up all
        return [do(item) for item in items]
    jobs = [_pool().submit(do, item) for item in items[1:]]
    try:
        first = do(items[0])
    finally:
        ends = [job.exception() for job in jobs]
    for end in ends:
        if end is not None:
            raise end
    return [first, *(job.result() for job in jobs)]


def together(*calls: Callable[[], Any]) -> list[Any]:
    """What each of some functions returns; the same otherwise."""
    return each(lambda call: call(), calls)


@contextmanager
def alongside(check: Callable[[], Any]) -> Iterator[None]:
    """Have a check made while what is in here goes on; after it, the check has passed. Errors: the check's go first."""
    job = _pool().submit(check)
    try:
        yield
    except Exception:
        job.result()
        raise
    job.result()


def _pool() -> ThreadPoolExecutor:
    if os.getpid() not in _pools:
        _pools[os.getpid()] = ThreadPoolExecutor(_WORKERS, "clickjoin-requests", initializer=_begin)
    return _pools[os.getpid()]


def _begin() -> None:
    _inside.is_worker = True
