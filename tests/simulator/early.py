"""Tables of few rows, read by the process when a DataFrame is made, not when Spark evaluates it: every other one."""

from __future__ import annotations

from typing import Any

from tests.simulator import rust


def rows_of_version(spark: Any, root: str, table: Any, columns: Any) -> Any:
    """A table at the version that a handle shows; None where Spark is to read it."""
    version = table.version()
    return _now(spark.read.format("delta").option("versionAsOf", version).load(root), root) if version % 2 else None


def rows_of_files(spark: Any, root: str, files: Any, columns: Any) -> Any:
    """Some files of a table; None where Spark is to read them."""
    paths = files["path"].to_pylist()
    if not len(paths) % 2:
        return None
    ddl = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    return _now(spark.read.schema(ddl).parquet(*(f"{root}/{path}" for path in paths)), root)


def _now(frame: Any, root: str) -> Any:
    """A frame of the rows that there are now; None where a file is gone, which Spark then says."""
    rust.lake().pause("read", root.rsplit("/", 1)[-1])
    try:
        rows = frame.rows()
    except FileNotFoundError:
        return None
    return frame.sparkSession.createDataFrame(rows, frame.columns)
