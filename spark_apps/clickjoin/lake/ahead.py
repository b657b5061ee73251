"""Tables on S3 that were looked at before anybody opened them: many at once take as long as one.

They are no tables that a process has opened: what its batches say they have seen is of those alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from deltalake.exceptions import DeltaError

from clickjoin.lake.log_load import load
from clickjoin.lake.s3_table import S3Table


class Ahead:
    """Handles by the tables' names, until one is taken."""

    def __init__(self) -> None:
        self._held: dict[str, S3Table] = {}

    def __bool__(self) -> bool:
        return bool(self._held)

    def __contains__(self, name: str) -> bool:
        return name in self._held

    def load(self, root: str, names: Sequence[str], check: Callable[[], None]) -> None:
        """Look at some tables; those that are not there, or whose logs are damaged, are left out. Errors: OSError."""
        places = [f"{root}/{name}" for name in names]
        for name, place, log in zip(names, places, load(places), strict=True):
            if log is not None:
                with suppress(DeltaError):  # anyone who opens it says what is wrong
                    self._held[name] = S3Table(place, check, log)

    def get(self, name: str) -> S3Table | None:
        """A table that has not been taken."""
        return self._held.get(name)

    def take(self, name: str) -> S3Table | None:
        """The same, for anyone who opens it: it is held no longer."""
        return self._held.pop(name, None)
