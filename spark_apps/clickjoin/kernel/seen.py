"""Whether an executor sees a file or folder of the driver's machine: what a task says of its own disk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from clickjoin.kernel.arrays import text_array
from clickjoin.kernel.types import RecordFn


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
