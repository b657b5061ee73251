"""Foreign events on their way to be joined: those that a batch has landed, or that a retry takes up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickjoin.model.extent import Extent

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class JoinInput:
    """Where foreign events lie that are to be joined: `own`, and `named`, the primary events that they name.

    `due`: of a retry the events, columns as table `pending` without payload; their records lie in files `records` of
    that table, columns as deltalake's flattened add actions.
    """

    own: Extent
    named: Extent
    due: pa.Table | None = None
    records: pa.Table | None = None
