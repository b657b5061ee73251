"""An executor's Python: whether it can run what the driver ships to it, and sees its files; what a worker keeps.

Checking is the first thing that a task does. The kernel itself travels with the plan, so that there is no version of it
to differ. What a worker keeps from task to task is marked at Arrow's module, since the kernel's own are made again.
"""

from __future__ import annotations

import builtins
import ctypes
import gc
import os
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pickle import loads
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from clickjoin.kernel.arrays import text_array
from clickjoin.kernel.types import RecordFn


class Versions(NamedTuple):
    """What has to be alike: Python by its minor version (bytecode), the others by their major version (buffers)."""

    python: str
    pyarrow: str
    numpy: str


class VersionMismatch(Exception):
    """An executor has other versions than the driver; nothing of the task was done."""


def own_versions() -> Versions:
    """Those of this process."""
    python = ".".join(map(str, sys.version_info[:2]))
    return Versions(python, pa.__version__.partition(".")[0], np.__version__.partition(".")[0])


def installed() -> str:
    """What an executor has to have, as text: the versions of this process, whole."""
    python = ".".join(map(str, sys.version_info[:3]))
    return f"Python {python}, pyarrow {pa.__version__}, numpy {np.__version__}"


def checked(task: RecordFn, needs: Sequence[str] = (), *, fresh: bool = False) -> RecordFn:
    """A task that checks first whether its executor is like this process. Errors (there): VersionMismatch.

    `needs`: packages, by the names that pip knows, that the task imports besides; `fresh`: no other task of its worker
    has its code: what a user's adapter keeps, one task must not leave to the next.
    """
    from pyspark.serializers import CloudPickleSerializer

    wanted, code = own_versions(), CloudPickleSerializer().dumps(task)

    def checking(batches: Iterator[Any]) -> Iterator[Any]:
        require_same(wanted, own_versions())
        require_there(needs)
        prepare()
        made: RecordFn = loads(code) if fresh else remembered(code)
        return made(batches)

    return checking


def require_same(driver: Versions, executor: Versions) -> None:
    """Check that both are alike. Errors: VersionMismatch, which names what differs."""
    differs = [
        f"{name} {theirs} there, {mine} here"
        for name, mine, theirs in zip(Versions._fields, driver, executor, strict=True)
        if mine != theirs
    ]
    if differs:
        raise VersionMismatch("; ".join(differs) + ".")


def require_there(packages: Sequence[str]) -> None:
    """Check that packages are installed. Errors: VersionMismatch, which names those that are not."""
    lacking = [name for name in packages if find_spec(name.replace("-", "_")) is None]
    if lacking:
        raise VersionMismatch("; ".join(f"{name} is not installed there" for name in lacking) + ".")


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


def made(name: str) -> types.ModuleType:
    """An empty module, which others can refer to before it is filled: modules of a package import each other."""
    return types.ModuleType(name)


def filled(module: types.ModuleType, names: Mapping[str, Any]) -> None:
    """Give a module its names."""
    vars(module).update(names)
    vars(module)["__builtins__"] = vars(builtins)


class Mark(NamedTuple):
    """Something that the driver sees: a folder (`size` -1), or a file that has at least so many bytes.

    `what`: what it stands for, in the answer.
    """

    what: str
    path: str
    size: int = -1


def looker(marks: Sequence[Mark]) -> RecordFn:
    """What a task does: its rows are those things (column `what`) of which it does not see every mark."""

    def look(batches: Iterator[Any]) -> Iterator[Any]:
        for _ in batches:
            unseen = sorted({mark.what for mark in marks if not _sees(mark)})
            yield pa.RecordBatch.from_arrays([text_array(unseen, pa.string())], names=["what"])

    return look


def _sees(mark: Mark) -> bool:
    try:
        return os.path.isdir(mark.path) if mark.size < 0 else os.stat(mark.path).st_size >= mark.size  # noqa: PTH112, PTH116
    except OSError:
        return False
