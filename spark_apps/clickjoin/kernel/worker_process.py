"""A worker's Python process, which runs one task after another: what it keeps from one to the next.

What is kept is marked at Arrow's module, since the kernel's own are made again for each task.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from typing import Any

import pyarrow as pa

_READY, _CODE = "_clickjoin_ready", "_clickjoin_code"
_LATEST = 4  # tasks whose code is kept: two streams land while a batch before them is looked up
_KEEP = 256 << 20  # bytes
# M_TRIM_THRESHOLD, M_MMAP_THRESHOLD and M_ARENA_MAX of malloc.h: one heap for all threads, or each keeps its own.
_ONE_HEAP = {-1: _KEEP, -3: _KEEP, -8: 1}


def prepare() -> None:
    """Set a process up for its tasks, once."""
    if not pa.__dict__.get(_READY):
        pa.__dict__[_READY] = True
        gc.freeze()  # or PySpark's daemon goes through all that is imported after every task, 45 ms each
        keep_memory()


def keep_memory() -> bool:
    """Have Arrow give freed memory back to the process and not to the system; whether this C library can.

    Arrow's own pools return large pieces at once, and the system clears each page before it hands it out again, which
    took a seventh of a large batch's time. A worker stays as large as it has been, until Spark ends it.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # not glibc
        return False
    kept = all(mallopt(*setting) for setting in _ONE_HEAP.items())
    if kept:
        pa.set_memory_pool(pa.system_memory_pool())
    return kept


def remembered(name: str, make: Callable[[], Any]) -> Any:
    """What was made under this name before, of the latest few, or make it: tasks of a job all have the same code."""
    held: dict[str, Any] = pa.__dict__.setdefault(_CODE, {})
    found = held.pop(name) if name in held else make()
    held[name] = found
    for old in list(held)[:-_LATEST]:
        del held[old]
    return found
