"""The tables of per-key processing: an own folder of the pipeline, with a journal of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from clickjoin.engines.choose import open_own_tables
from clickjoin.kernel.types import delta_type
from clickjoin.lake.requirements import require_lake
from clickjoin.model.errors import LakeError
from clickjoin.schemas.arrow import arrow_schema
from clickjoin.schemas.process import FOLDER, MADE_BY, PROCESS, STATE, state_table

if TYPE_CHECKING:
    import pyarrow as pa

    from clickjoin.config import Pipeline
    from clickjoin.engines.tables_port import Tables
    from clickjoin.schemas import Table

TYPES = {"int64": "BIGINT", "double": "DOUBLE", "string": "STRING", "binary": "BINARY"}
_JOIN_FIRST = (
    "What is processed is this pipeline's own output: `clickjoin drain` with the same file fills it. Where it has run, "
    "mount the lake, or fix `lake` in the file"
)
_AGAIN = "Run `clickjoin process --rebuild`: it begins again from the whole output"


def folder(pipeline: Pipeline) -> str:
    """Where they lie."""
    return f"{pipeline.root}/{FOLDER}"


def open_tables(pipeline: Pipeline, own: pa.Schema, made_by: str) -> Tables:
    """The tables of a pipeline whose lake is there, made where they are missing. Errors: LakeError.

    Journal, state, signals, late and processed; `own`: columns of the processor's state; `made_by`: see loading.
    """
    require_lake(pipeline.root, _JOIN_FIRST)
    kinds = {field.name: TYPES[str(field.type)] for field in own}
    wanted = {table.name: table for table in PROCESS} | {"state": state_table(kinds, made_by)}
    tables = open_own_tables(pipeline, folder(pipeline), wanted)
    _make(tables, wanted)
    _require_fit(tables, made_by)
    return tables


def own_columns(tables: Tables) -> pa.Schema:
    """The columns of the processor's state."""
    table = tables.table("state")
    return arrow_schema(replace(table, columns=table.columns[len(STATE.columns) :]))


def _make(tables: Tables, wanted: Mapping[str, Table]) -> None:
    """Create those that are missing. Errors: LakeError where some are gone."""
    there = [name for name in wanted if tables.exists(name)]
    if len(there) < len(wanted) and any(tables.version(name) > 0 for name in there):
        gone = [name for name in wanted if not tables.exists(name)]  # another process may make them just now
        if gone:
            raise LakeError(
                f"{tables.root}: table {', '.join(gone)} is missing, and batches have been done", remedy=_AGAIN
            )
    for name, table in wanted.items():
        if name not in there:
            tables.create(table)


def _require_fit(tables: Tables, made_by: str) -> None:
    """Check that the state is of this processor. Errors: LakeError."""
    found = (tables.open("state").metadata().configuration or {}).get(MADE_BY, "{}")
    if found != made_by:
        was, wanted = json.loads(found), json.loads(made_by)
        differ = [name for name in sorted({*was, *wanted}) if was.get(name) != wanted.get(name)]
        raise LakeError(
            f"{tables.path('state')}: was made with another section `process`: "
            + "; ".join(f"{name} was {was.get(name)} and is {wanted.get(name)}" for name in differ),
            remedy=f"Put it back. Or: {_AGAIN[0].lower()}{_AGAIN[1:]}",
        )
    known = {name: kind for name, kind in tables.columns("state").items() if name not in STATE.names}
    own = {column.name: delta_type(column.type) for column in tables.table("state").columns[len(STATE.columns) :]}
    if known != own:
        raise LakeError(
            f"{tables.path('state')}: holds {', '.join(known) or 'no columns'}, and the processor's state is "
            f"{', '.join(own)}: its code has changed",
            remedy=_AGAIN,
        )
