"""Foreign events on their way to a joiner: those that a batch has landed, or that a retry takes up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickjoin.model.extent import Extent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class JoinInput:
    """Foreign events to join: rows as table `foreign`, with round, attempt and first_seen; and where they lie.

    `events` makes the plan that reads them, which the Arrow joiner does not need; `own` is their extent, `named` that
    of the primary events that they name.
    """

    events: Callable[[], DataFrame]
    own: Extent
    named: Extent
