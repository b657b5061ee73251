"""Workers that begin while this process waits for what its lake's store answers.

A session on a server has Python workers of its own, which its first task waits for: a second, and more on a busy host.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from clickjoin.kernel.ready import ready
from clickjoin.model.places import is_on_s3
from clickjoin.spark.session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def begin_workers(session: SparkSession, root: str, tasks: int) -> Thread | None:
    """Have a session's workers begin, for so many tasks at once, and do not wait; None where that gains nothing."""
    if not is_on_s3(root) or not is_remote(session):
        return None

    def begin() -> None:
        with suppress(Exception):  # what is wrong with a worker, the first batch says
            session.range(0, tasks, 1, tasks).mapInArrow(ready(root), "id LONG").collect()

    thread = Thread(target=begin, name="clickjoin-workers", daemon=True)
    thread.start()
    return thread
