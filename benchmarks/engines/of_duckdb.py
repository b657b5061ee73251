"""The steps by DuckDB, on one thread."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

import duckdb
import pyarrow as pa

from benchmarks.engines import lines, queries
from benchmarks.engines.given import BATCH, Parsed
from benchmarks.engines.kernel import needed
from benchmarks.engines.result import quoted

TIMED = f"""
SELECT event_id, TRY_CAST(regexp_extract(event_id, '{lines.EMBEDDED}', 1) AS BIGINT) AS event_time,
  primary_id, TRY_CAST(regexp_extract(primary_id, '{lines.EMBEDDED}', 1) AS BIGINT) AS primary_time
FROM """
EXTRACT = f"""{TIMED} (
  SELECT ids[1] AS event_id, ids[2] AS primary_id
  FROM (
    SELECT CASE WHEN json_valid(text) THEN json_extract_string(text, {list(lines.IDS.values())}) END AS ids FROM texts
  )
)"""
READ = """(
  SELECT event_id, query_id AS primary_id FROM read_json('{file}', format = 'newline_delimited', ignore_errors = true,
    columns = {{'event_id': 'VARCHAR', 'query_id': 'VARCHAR'}})
)"""
WRITE = """
COPY (SELECT * FROM rows {order}) TO '{folder}' (
  FORMAT parquet, PARTITION_BY ({partitions}), COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE 4096
)"""


@cache
def _database() -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    database.execute("SET threads = 1; SET TimeZone = 'UTC'")
    return database


def _run(sql: str, **tables: pa.Table) -> pa.Table:
    for name, table in tables.items():
        _database().register(name, table)
    return _database().sql(sql).to_arrow_table()


def parse(file: Path) -> Parsed:
    """Lines to columns."""
    return lines.parsed(file, extracted)


def extracted(text: pa.Array) -> pa.Table:
    """Ids and times of some texts, null where there are none."""
    return _run(EXTRACT, texts=pa.table({"text": text}))


def ids_of_whole(file: Path) -> list[str | None]:
    """The id of each line that its reader of JSON files gives."""
    return _run(TIMED + READ.format(file=file))[0].to_pylist()


def parse_whole(file: Path) -> Parsed:
    """The same by DuckDB's reader of JSON files: a bad line is a row of nulls."""
    return lines.read_whole(file, _run(TIMED + READ.format(file=file)))


def first(rows: pa.Table, order: tuple[str, ...]) -> pa.Table:
    """Of rows with the same key the first in an order."""
    return queries.first(_run, f"arg_min(n, ({quoted(order)}))", rows, order)


join = partial(queries.join, _run)


def written(folder: Path, tables: dict[str, pa.Table], partitions: dict[str, tuple[str, ...]]) -> None:
    """Tables as Parquet files by partition."""
    for name, rows in tables.items():
        order = "ORDER BY event_time" if name == "registry" else ""
        _database().register("rows", rows)
        (folder / name).mkdir(parents=True)
        _database().execute(WRITE.format(order=order, folder=folder / name, partitions=", ".join(partitions[name])))


def read(folder: Path, files: list[str]) -> pa.Table:
    """A batch's rows of some files of `foreign`, the columns that a join needs."""
    paths = [str(folder / "foreign" / file) for file in files]
    sql = f"SELECT {quoted(needed().names)} FROM read_parquet({paths}, hive_partitioning = false) WHERE batch = {BATCH}"
    return _run(sql).cast(needed())
