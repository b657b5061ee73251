"""What a worker needs for its first task, had before there is one. Runs on executors, which need no clickjoin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq

from clickjoin.kernel.filesystem import filesystem
from clickjoin.kernel.types import RecordFn


def ready(root: str) -> RecordFn:
    """A task that does nothing, where a lake's files can be reached and read. Columns out: as in."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        assert pq.ParquetFile
        filesystem(root)
        yield from batches

    return task
