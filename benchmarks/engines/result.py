"""What an engine finds, as the kernel's rows, and whether they are the same rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clickjoin.kernel.arrays import int64_array, rows_at, to_numpy
from clickjoin.kernel.data_file import Target
from clickjoin.kernel.fsync import flush_data


def quoted(names: Sequence[str]) -> str:
    """Names of columns as SQL has them."""
    return ", ".join(f'"{name}"' for name in names)


def named(rows: pa.Table, *names: str) -> pa.Table:
    """Some columns, and `n`: each row's number."""
    return rows.select(list(names)).append_column("n", int64_array(np.arange(rows.num_rows)))


def gathered(clicks: pa.Table, found: pa.Table) -> pa.Table:
    """Rows of clicks by number, each with what was found for it. Columns in: one (number), other."""
    at = to_numpy(found["one"].cast(pa.int64()))
    return rows_at(clicks, at).append_column("primary", found["other"])


def finished(target: Target) -> dict[str, object]:
    """Flush the files of a table, and read what their footers say, which a commit needs: ends of columns, rows.

    The kernel does the same while it writes. Bytes too.
    """
    rows, size = 0, 0
    ends: dict[str, list[Any]] = {}
    for file in Path(target.root).rglob("*.parquet"):
        flush_data(Path(target.root), str(file.relative_to(target.root)))
        known = pq.read_metadata(file)
        rows, size = rows + known.num_rows, size + file.stat().st_size
        for name in set(target.statistics) - set(target.partitions):
            column = known.schema.names.index(name)
            parts = [known.row_group(at).column(column).statistics for at in range(known.num_row_groups)]
            ends.setdefault(name, []).extend([min(part.min for part in parts), max(part.max for part in parts)])
    return {"rows": rows, "bytes": size} | {name: (min(some), max(some)) for name, some in ends.items()}


def stored(target: Target) -> pa.Table:
    """Rows of all files of a table, sorted; each with the partition that its folder says."""
    parts = []
    for file in sorted(Path(target.root).rglob("*.parquet")):
        rows = pq.ParquetFile(file).read()
        held = dict(name.split("=") for name in file.relative_to(target.root).parts[:-1])
        for name, value in held.items():
            rows = rows.append_column(name, pa.repeat(pa.scalar(value), rows.num_rows))
        parts.append(rows.select(target.schema.names).cast(target.schema))
    return in_order(pa.concat_tables(parts))


def in_order(rows: pa.Table) -> pa.Table:
    """Rows in an order that does not depend on who made them."""
    keys = [name for name in ("event_time", "event_id", "offset") if name in rows.column_names]
    return rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in keys])).combine_chunks()


def same(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables hold the same rows, whatever their order."""
    one, other = in_order(one), in_order(other)
    return one.schema.names == other.schema.names and one.equals(other.cast(one.schema))


def shown(found: dict[str, object]) -> str:
    """What footers say, to compare."""
    return json.dumps({name: value for name, value in found.items() if name != "bytes"}, default=str, sort_keys=True)
