"""The steps as the kernel does them."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pyarrow as pa

from benchmarks.engines import lines
from benchmarks.engines.given import BATCH, KEPT, SCHEMAS, Parsed, chunk_of, spec, targets
from clickjoin.kernel.arrays import rows_at
from clickjoin.kernel.data_file import write
from clickjoin.kernel.event_key import first_of
from clickjoin.kernel.lookup import paired
from clickjoin.kernel.parquet_rows import of_batch
from clickjoin.kernel.parse.fields import needed as fields
from clickjoin.kernel.parse.json_lines import JsonParser
from clickjoin.kernel.parse.lines import Lines
from clickjoin.kernel.read_lines import read_chunk
from clickjoin.model.ids import claims_order


def parse(file: Path) -> Parsed:
    """Lines to columns."""
    parts: list[pa.RecordBatch] = []
    bad: list[int] = []
    for batch in read_chunk(chunk_of(file), spec(foreign=True)):
        if batch["reason"].null_count:
            parts.append(batch)
        else:
            bad += batch["offset"].to_pylist()
    return Parsed(pa.Table.from_batches(parts).select(KEPT), bad)


def ids(file: Path) -> list[str | None]:
    """The id of each line, as text; none of those that are refused."""
    return lines.ids(file, _ids)


def _ids(some: Lines) -> dict[int, str | None]:
    segments = JsonParser(fields(spec(foreign=True))).parse(some)[0]
    each = (zip(part.rows.tolist(), part.columns["event_id"].to_pylist(), strict=True) for part in segments)
    return dict(chain.from_iterable(each))


def parse_whole(file: Path) -> Parsed:
    """The same: the kernel has one way for all files."""
    return parse(file)


def first(rows: pa.Table, order: tuple[str, ...]) -> pa.Table:
    """Of rows with the same key the first in an order."""
    return first_of(rows, order)


def join(clicks: pa.Table, queries: pa.Table) -> pa.Table:
    """Clicks with the payload of the query that they name."""
    at, found = paired(clicks, queries, None)
    return rows_at(clicks, at).append_column("primary", found["payload"])


def written(folder: Path, tables: dict[str, pa.Table]) -> None:
    """Tables as Parquet files by partition, with statistics."""
    order = {"registry": claims_order(by_id=False)}
    for name, target in targets(folder).items():
        write(target, tables[name], order.get(name, ""))


def read(folder: Path, files: list[str]) -> pa.Table:
    """A batch's rows of some files of `foreign`, the columns that a join needs."""
    return pa.concat_tables([of_batch(str(folder / "foreign"), file, BATCH, needed()) for file in files])


def needed() -> pa.Schema:
    """Columns of `foreign` that a join reads."""
    return pa.schema([field for field in SCHEMAS["foreign"] if field.name not in ("path", "length", "bucket")])
