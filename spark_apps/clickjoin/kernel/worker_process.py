"""A worker's Python process, which runs one task after another: what it keeps from one to the next.

What is kept is marked at Arrow's module, since the kernel's own are made again for each task.
"""

from __future__ import annotations

import ctypes
import gc
from pickle import loads
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


def keep_memory() -> None:
    """Have Arrow give freed memory back to the process and not to the system, where the C library is glibc.

    Arrow's own pools return large pieces at once, and the system clears each page before it hands it out again, which
    took a seventh of a large batch's time. A worker stays as large as it has been, until Spark ends it.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # not glibc
        return
    if all(mallopt(*setting) for setting in _ONE_HEAP.items()):
        pa.set_memory_pool(pa.system_memory_pool())


def remembered(code: bytes) -> Any:
    """What some pickled code is, of the latest few as it was loaded before: tasks of a job all have the same."""
    held: dict[bytes, Any] = pa.__dict__.setdefault(_CODE, {})
    found = held.pop(code) if code in held else loads(code)
    held[code] = found
    for old in list(held)[:-_LATEST]:
        del held[old]
    return found
