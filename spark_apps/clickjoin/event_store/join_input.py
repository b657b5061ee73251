"""Foreign events on their way to a joiner: those that a batch has landed, or that a retry takes up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickjoin.model.extent import Extent

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class JoinInput:
    """Foreign events to join: rows as table `foreign`, with round, attempt and first_seen; and where they lie.

    `events` makes the plan that reads them, which the Arrow joiner does not need of new records; `own` is their
    extent, `named` that of the primary events that they name. `due`: of a retry the same rows, but for their records,
    where these were chosen by this process; the records lie in `records`.
    """

    events: Callable[[], DataFrame]
    own: Extent
    named: Extent
    due: pa.Table | None = None
    records: pa.Table | None = None
