"""Ids that are looked for in data files. Runs on executors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import to_numpy, where

ROWS_TO_HOLD = 1_000  # until all are checked against the ids at once: of times that many events share they are many
_ID = "event_id"


class WantedIds:
    """Ids that are looked for: their hash table is made when it is first asked for."""

    def __init__(self, ids: Any, *, others: bool) -> None:
        self._ids, self._others = ids, others
        self._unique: pa.Array | None = None

    def among(self, ids: Any) -> np.ndarray[Any, Any]:
        """Which of some ids are wanted."""
        if self._unique is None:
            self._unique = pc.unique(self._ids)
        return to_numpy(pc.is_in(ids, value_set=self._unique))

    def only(self, rows: pa.Table, asked: int) -> pa.Table:
        """Rows whose id is wanted; all where others may be among them and they are not many more than was asked for."""
        few = self._others and rows.num_rows <= 2 * asked + ROWS_TO_HOLD and not rows[_ID].null_count
        return rows if few else where(rows, self.among(rows[_ID]))

    def few(self, rows: pa.Table, asked: int) -> pa.Table:
        """The same of some of the rows, which are held as they are while they are few."""
        return rows if rows.num_rows <= ROWS_TO_HOLD else self.only(rows, asked)
