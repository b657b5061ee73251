"""The steps by DataFusion, on one thread, where it is installed. It parses only what has no bad line."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
from datafusion import SessionConfig, SessionContext, col, literal

from benchmarks.engines import lines, queries
from benchmarks.engines.given import BATCH, Parsed
from benchmarks.engines.kernel import needed
from benchmarks.engines.result import quoted

TIMED = f"""
SELECT event_id, TRY_CAST(regexp_match(event_id, '{lines.EMBEDDED}')[1] AS BIGINT) AS event_time,
  query_id AS primary_id, TRY_CAST(regexp_match(query_id, '{lines.EMBEDDED}')[1] AS BIGINT) AS primary_time
FROM records"""
WRITE = """
COPY (SELECT * FROM rows {order}) TO '{folder}/' STORED AS parquet PARTITIONED BY ({partitions}) OPTIONS (
  'format.compression' 'zstd(1)', 'format.max_row_group_size' '4096', 'format.statistics_enabled' 'chunk'
)"""


def _context() -> SessionContext:
    config = SessionConfig().with_target_partitions(1).with_batch_size(8192)
    config = config.set("datafusion.execution.keep_partition_by_columns", "false")
    return SessionContext(config.set("datafusion.execution.parquet.schema_force_view_types", "false"))


def _run(sql: str, **tables: pa.Table) -> pa.Table:
    context = _context()
    for name, table in tables.items():
        context.register_record_batches(name, [table.to_batches()])
    return context.sql(sql).to_arrow_table()


def ids_of_whole(file: Path) -> list[str | None]:
    """The id of each line that its reader of JSON files gives."""
    return _read(file)[0].to_pylist()


def parse_whole(file: Path) -> Parsed:
    """Lines to columns, by DataFusion's reader of JSON files: it stops at a bad line."""
    return lines.read_whole(file, _read(file))


def _read(file: Path) -> pa.Table:
    schema = pa.schema([("event_id", pa.string()), ("query_id", pa.string())])
    context = _context()
    context.register_view("records", context.read_json(file, schema=schema, file_extension=".jsonl"))
    return context.sql(TIMED).to_arrow_table()


def first(rows: pa.Table, order: tuple[str, ...]) -> pa.Table:
    """Of rows with the same key the first in an order."""
    return queries.first(_run, f"first_value(n ORDER BY {quoted(order)})", rows, order)


join = partial(queries.join, _run)


def written(folder: Path, tables: dict[str, pa.Table], partitions: dict[str, tuple[str, ...]]) -> None:
    """Tables as Parquet files by partition."""
    for name, rows in tables.items():
        order = "ORDER BY event_time" if name == "registry" else ""
        _run(WRITE.format(order=order, folder=folder / name, partitions=", ".join(partitions[name])), rows=rows)


def read(folder: Path, files: list[str]) -> pa.Table:
    """A batch's rows of some files of `foreign`, the columns that a join needs."""
    context = _context()
    parts = []
    for file in files:
        rows = context.read_parquet(folder / "foreign" / file).filter(col("batch") == literal(BATCH))
        parts.append(rows.select(*needed().names).to_arrow_table().cast(needed()))
    return pa.concat_tables(parts)
