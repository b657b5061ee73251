"""A session that is started when it is needed, and that then can commit to a lake's store as it must."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickjoin.model.places import is_on_s3
from clickjoin.spark import object_store
from clickjoin.spark.lazy import LazySession
from clickjoin.spark.session import require_log_stores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def reaching(session: LazySession, root: str) -> LazySession:
    """The same session; where it is started it is checked whether it can commit to S3. Errors: ConfigError."""
    if not is_on_s3(root):
        return session

    def made() -> SparkSession:
        started = session()
        require_log_stores(started, object_store.REQUIRED)
        object_store.reach(started, root)
        return started

    checked = LazySession(made)
    if session.started:
        checked()  # what it cannot do is said now
    return checked
