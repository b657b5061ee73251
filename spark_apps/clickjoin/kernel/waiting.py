"""Events that wait: when each is tried again, and when it is given up (Photon, section 3.2.1). Runs on executors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import int64_array, mask, number_array, scalar, to_numpy
from clickjoin.kernel.forgotten import NO_ID
from clickjoin.model.ids import MICROS

_TIME, _TEXT = pa.timestamp("us", "UTC"), pa.string()
_INT = pa.int32()
TRIED = pa.schema([("round", _INT), ("attempt", _INT), ("first_seen", _TIME)])


def moment_scalar(micros: int) -> Any:
    """A time, microseconds since 1970, as a scalar."""
    return number_array([micros], _TIME)[0]


def first_try(rows: pa.Table) -> pa.Table:
    """New records with the columns of TRIED. Columns in: landed_at, and others."""
    none = number_array(np.zeros(rows.num_rows, np.int32), _INT)
    return rows.append_column("round", none).append_column("attempt", none).append_column(
        TRIED.field("first_seen"), rows["landed_at"].cast(_TIME)
    )  # fmt: skip


def tried(rows: pa.Table) -> Any:
    """How often each has been tried in its round, with this try."""
    return pc.add(rows["attempt"], number_array([1], _INT)[0])


class Tries(NamedTuple):
    """The rules of a batch: whether it tries `again` what has waited, and then what it gives up.

    `planned`: when, microseconds; `first`, `backoff`, `longest`: as in section `retry`, seconds. An event is given up
    at try `most` where it was first seen by `oldest`, or where its primary's stream is past `passed` (microseconds;
    None: none is given up by that). `decides`: no event is joined before it would be given up.
    """

    planned: int
    first: float
    backoff: float
    longest: float
    again: bool = False
    most: int = 0
    oldest: int = 0
    passed: int | None = None
    decides: bool = False

    def absent(self, rows: pa.Table) -> np.ndarray[Any, Any]:
        """Events whose primary event would lie where its stream is known to hold no more: at their own at the latest.

        Columns in: event_time, primary_time (may be null).
        """
        if self.passed is None:
            return np.zeros(rows.num_rows, np.bool_)
        at = pc.coalesce(rows["primary_time"], rows["event_time"]).cast(_TIME)
        return mask(pc.less(at, moment_scalar(self.passed)))

    def over(self, rows: pa.Table) -> np.ndarray[Any, Any]:
        """Events that wait no longer. Columns in: those of `absent`, primary_id, attempt (before this try), first_seen.

        Where it `decides`, an event without a key has nothing to wait for.
        """
        over = self.absent(rows)
        if self.decides and rows.num_rows:
            over = over | mask(pc.equal(rows["primary_id"], scalar(NO_ID)))
        if not self.again:
            return over
        often = mask(pc.greater_equal(tried(rows), number_array([self.most], _INT)[0]))
        long = mask(pc.less_equal(rows["first_seen"], moment_scalar(self.oldest)))
        return over | (often & long)

    def states(self, rows: pa.Table, status: str) -> dict[str, Any]:
        """What table `pending` says of events of one status besides their own columns and the batch's."""
        waits, none = status == "pending", pa.nulls(rows.num_rows, _TEXT)
        said = "claimed_elsewhere" if status == "repeat" else status
        more = {
            "attempt": tried(rows),
            "state": scalar("waiting" if waits else "resolved"),
            "outcome": none if waits else scalar(said),
            "due_at": self._due(rows) if waits else pa.nulls(rows.num_rows, _TIME),
        }
        # The record itself is kept once, in the row that was written when the event first had to wait.
        return more | ({"payload": none} if self.again else {})

    def _due(self, rows: pa.Table) -> Any:
        before = to_numpy(rows["attempt"]).astype(np.float64)
        with np.errstate(over="ignore"):
            seconds = np.minimum(self.first * self.backoff**before, self.longest)
        return int64_array(self.planned + np.rint(seconds * MICROS).astype(np.int64)).cast(_TIME)
