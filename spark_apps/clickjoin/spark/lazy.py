"""A Spark session that is started by what first needs it, and not before."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    # A session, or what makes one when it is first needed.
    Session: TypeAlias = "SparkSession | LazySession | Callable[[], SparkSession]"


class LazySession:
    """One session for all who hold this object: from several threads, too, it is started once."""

    def __init__(self, make: Callable[[], SparkSession]) -> None:
        self._make = make
        self._started: SparkSession | None = None
        self._lock = RLock()

    @property
    def started(self) -> SparkSession | None:
        """The session, if it has been started."""
        return self._started

    def __call__(self) -> SparkSession:
        """The session, started now if it has not been. Errors: those of its start; the next call tries again."""
        with self._lock:
            if self._started is None:
                self._started = self._make()
            return self._started


def lazy(session: Session) -> LazySession:
    """A session that is there, or what makes one, as a LazySession; one that is given as such is shared."""
    if isinstance(session, LazySession):
        return session
    if callable(session):
        return LazySession(session)
    found = LazySession(lambda: session)
    found()
    return found
