"""The tables of per-key processing: an own folder of the pipeline, with a journal of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clickjoin.kernel.types import delta_type
from clickjoin.lake import DeltaTables
from clickjoin.lake.requirements import require_lake
from clickjoin.lake.restored import mark, require_same
from clickjoin.model.errors import LakeError
from clickjoin.schemas import Table
from clickjoin.schemas.process import FOLDER, MADE_BY, PROCESS, STATE, state_table

if TYPE_CHECKING:
    import pyarrow as pa

    from clickjoin.config import Pipeline

TYPES = {"int64": "BIGINT", "double": "DOUBLE", "string": "STRING", "binary": "BINARY"}
_JOIN_FIRST = (
    "What is processed is this pipeline's own output: `clickjoin drain` with the same file fills it. Where it has run, "
    "mount the lake, or fix `lake` in the file"
)
_AGAIN = "Run `clickjoin process --rebuild`: it begins again from the whole output"


def folder(pipeline: Pipeline) -> str:
    """Where they lie."""
    return f"{pipeline.root}/{FOLDER}"


class ProcessTables(DeltaTables):
    """Journal, state, signals, late and processed; `own`: columns of the processor's state; `made_by`: see loading."""

    def __init__(self, root: str, own: pa.Schema, made_by: str) -> None:
        super().__init__(root)
        self.own, self._lake = own, root.rpartition("/")[0]
        self._lake_mark = mark(self._lake)
        kinds = {field.name: TYPES[str(field.type)] for field in own}
        self._made_by = made_by
        self._tables = {table.name: table for table in PROCESS} | {"state": state_table(kinds, made_by)}

    def table(self, name: str) -> Table:
        """See DeltaReader."""
        return self._tables[name]

    def require_same(self) -> None:
        """See DeltaReader: a restore exchanges the lake's folder, and these tables with it."""
        require_same(self._lake, self._lake_mark)
        super().require_same()

    def make(self) -> None:
        """Create those that are missing. Errors: LakeError where some are gone, or state is another processor's."""
        there = [name for name in self._tables if self.exists(name)]
        if len(there) < len(self._tables) and self._worked_in(there):
            gone = [name for name in self._tables if not self.exists(name)]  # another process may make them just now
            if gone:
                raise LakeError(
                    f"{self.root}: table {', '.join(gone)} is missing, and batches have been done", remedy=_AGAIN
                )
        for table in self._tables.values():
            if table.name not in there:
                self.create(table)
        self._require_fit()

    def _worked_in(self, there: list[str]) -> bool:
        return any(self.version(name) > 0 for name in there)

    def _require_fit(self) -> None:
        found = (self.open("state").metadata().configuration or {}).get(MADE_BY, "{}")
        if found != self._made_by:
            was, wanted = json.loads(found), json.loads(self._made_by)
            differ = [name for name in sorted({*was, *wanted}) if was.get(name) != wanted.get(name)]
            raise LakeError(
                f"{self.path('state')}: was made with another section `process`: "
                + "; ".join(f"{name} was {was.get(name)} and is {wanted.get(name)}" for name in differ),
                remedy=f"Put it back. Or: {_AGAIN[0].lower()}{_AGAIN[1:]}",
            )
        known = {name: kind for name, kind in self.columns("state").items() if name not in STATE.names}
        wanted = {column.name: delta_type(column.type) for column in self.table("state").columns[len(STATE.columns) :]}
        if known != wanted:
            raise LakeError(
                f"{self.path('state')}: holds {', '.join(known) or 'no columns'}, and the processor's state is "
                f"{', '.join(wanted)}: its code has changed",
                remedy=_AGAIN,
            )


def open_tables(pipeline: Pipeline, own: pa.Schema, made_by: str) -> ProcessTables:
    """The tables of a pipeline whose lake is there, made where they are missing. Errors: LakeError."""
    require_lake(pipeline.root, _JOIN_FIRST)
    tables = ProcessTables(folder(pipeline), own, made_by)
    tables.make()
    return tables
