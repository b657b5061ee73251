"""Workers that begin before there is a task for them: only where there is something to wait for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from clickjoin.kernel.ready import ready
from clickjoin.spark.early_workers import begin_workers


class Session:
    """Stands where a session on a server does: what is asked of it, and an answer that fails."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def range(self, *numbers: int) -> Any:
        """A frame that cannot be collected."""
        self.asked.append(numbers)
        raise RuntimeError("no worker begins")


def test_nobody_hears_of_workers_that_do_not_begin() -> None:
    """The first batch will say what is wrong with them, and what to do."""
    session: Any = Session()
    thread = begin_workers(session, "s3://lake/p", 8)
    assert thread is not None
    thread.join(10)
    assert (thread.is_alive(), session.asked) == (False, [(0, 8, 1, 8)])


def test_only_where_there_is_something_to_wait_for() -> None:
    session: Any = Session()
    assert begin_workers(session, "/lake/p", 8) is None
    assert begin_workers(SimpleNamespace(), "s3://lake/p", 8) is None  # type: ignore[arg-type]
    assert session.asked == []


def test_the_task_changes_nothing() -> None:
    batches = [pa.record_batch({"id": pa.array([1, 2], pa.int64())})]
    assert list(ready("/lake/p")(iter(batches))) == batches
