"""What was read of small tables on S3, kept for as long as they stay at the version that it was read at."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

_MOST_ROWS, _MOST_READS = 1_000, 16


class KeptRows:
    """Rows by table, version, filters and columns: those asked for last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, str], pa.Table] = OrderedDict()

    def of(
        self,
        name: str,
        version: int,
        filters: Sequence[Any] | None,
        columns: Sequence[str] | None,
        read: Callable[[], pa.Table],
    ) -> pa.Table:
        """The rows, read where they are not known."""
        key = name, version, repr((filters, columns))
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        rows = read()
        if rows.num_rows <= _MOST_ROWS:
            self._kept[key] = rows
        while len(self._kept) > _MOST_READS:
            self._kept.popitem(last=False)
        return rows

    def forget(self, name: str) -> None:
        """Read a table again the next time: another may lie in its place."""
        for key in [key for key in self._kept if key[0] == name]:
            del self._kept[key]
