"""Whether an executor's Python can run what the driver ships to it: the first thing that a task does.

The kernel itself travels with the plan, so that there is no version of it to differ.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pickle import loads
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from clickjoin.kernel.types import RecordFn
from clickjoin.kernel.worker_process import prepare, remembered


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
