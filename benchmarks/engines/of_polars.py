"""The steps by Polars, on one thread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from benchmarks.engines import lines
from benchmarks.engines.given import BATCH, BY_KEY, Parsed
from benchmarks.engines.kernel import needed
from benchmarks.engines.result import gathered, named
from clickjoin.kernel.arrays import rows_at


def parse(file: Path) -> Parsed:
    """Lines to columns."""
    return lines.parsed(file, extracted)


def extracted(text: pa.Array) -> pa.Table:
    """Ids and times of some texts, null where there are none."""
    rows = pl.DataFrame({"text": pl.from_arrow(text)})
    found = rows.select(pl.col("text").str.json_path_match(path).alias(name) for name, path in lines.IDS.items())
    return _timed(found)


def _timed(found: pl.DataFrame) -> pa.Table:
    return as_arrow(found.with_columns(
        pl.col(name).str.extract(lines.EMBEDDED).cast(pl.Int64).alias(time) for name, time in lines.TIMES.items()
    ))  # fmt: skip


def ids_of_whole(file: Path) -> list[str | None]:
    """The id of each line that its reader of JSON files gives."""
    return _read(file)["event_id"].to_list()


def parse_whole(file: Path) -> Parsed:
    """The same by Polars' reader of JSON files: it stops at a bad line."""
    return lines.read_whole(file, _timed(_read(file)))


def _read(file: Path) -> pl.DataFrame:
    found = pl.read_ndjson(file, schema={"event_id": pl.String, "query_id": pl.String})
    return found.rename({"query_id": "primary_id"})


def as_arrow(rows: pl.DataFrame) -> pa.Table:
    """Rows as the kernel has them: text with 32-bit offsets."""
    found = rows.to_arrow()
    texts = [field.name for field in found.schema if field.type in (pa.large_string(), pa.string_view())]
    for name in texts:
        found = found.set_column(found.column_names.index(name), name, found[name].cast(pa.string()))
    return found


def first(rows: pa.Table, order: tuple[str, ...]) -> pa.Table:
    """Of rows with the same key the first in an order."""
    few = pl.from_arrow(rows.select([*BY_KEY, *(name for name in order if name not in BY_KEY)])).with_row_index("n")
    found = few.sort(order).unique(subset=BY_KEY, keep="first", maintain_order=False)["n"]
    return rows_at(rows, np.sort(found.to_numpy()).astype(np.int64))


def join(clicks: pa.Table, queries: pa.Table) -> pa.Table:
    """Clicks with the payload of the query that they name."""
    one = pl.from_arrow(named(clicks, "primary_id", "primary_time"))
    other = pl.from_arrow(queries.select([*BY_KEY, "payload"]))
    found = one.join(other, left_on=["primary_id", "primary_time"], right_on=BY_KEY, how="inner")
    return gathered(clicks, as_arrow(found.select(one="n", other="payload")))


def written(folder: Path, tables: dict[str, pa.Table], partitions: dict[str, tuple[str, ...]]) -> None:
    """Tables as Parquet files by partition."""
    for name, rows in tables.items():
        frame = pl.from_arrow(rows)
        frame = frame.sort("event_time") if name == "registry" else frame
        place = pl.PartitionBy(folder / name, key=list(partitions[name]), include_key=False)
        frame.lazy().sink_parquet(place, compression_level=1, row_group_size=4096, mkdir=True, engine="streaming")


def read(folder: Path, files: list[str]) -> pa.Table:
    """A batch's rows of some files of `foreign`, the columns that a join needs."""
    scan = pl.scan_parquet([folder / "foreign" / file for file in files], hive_partitioning=False)
    return as_arrow(scan.filter(pl.col("batch") == BATCH).select(needed().names).collect()).cast(needed())
