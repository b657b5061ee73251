"""Steps that engines of SQL do by the same statements."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from benchmarks.engines.given import BY_KEY
from benchmarks.engines.result import gathered, named
from clickjoin.kernel.arrays import int64_array, rows_at, to_numpy

_JOIN = """
SELECT c.n AS one, q.payload AS other FROM c JOIN q ON c.primary_id = q.event_id AND c.primary_time = q.event_time"""


class Run(Protocol):
    """Runs a statement over some tables by their names."""

    def __call__(self, sql: str, **tables: pa.Table) -> pa.Table:
        """The rows that it gives."""
        ...


def first(run: Run, least: str, rows: pa.Table, order: tuple[str, ...]) -> pa.Table:
    """Of rows with the same key the first in an order. `least`: an aggregate that gives its number `n`."""
    few = rows.select([*BY_KEY, *order]).append_column("n", int64_array(np.arange(rows.num_rows)))
    found = run(f"SELECT {least} AS n FROM few GROUP BY {', '.join(BY_KEY)}", few=few)
    return rows_at(rows, np.sort(to_numpy(found["n"])))


def join(run: Run, clicks: pa.Table, queries: pa.Table) -> pa.Table:
    """Clicks with the payload of the query that they name."""
    found = run(_JOIN, c=named(clicks, "primary_id", "primary_time"), q=queries.select([*BY_KEY, "payload"]))
    return gathered(clicks, found)
