"""Creating a pipeline's tables: once, by the first process that starts, and never over a lake that has lost one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clickjoin.agreement.check import require_agreement
from clickjoin.joiner.adapter import adapter_of
from clickjoin.joiner.typed_output import with_types
from clickjoin.lake import DeltaTables
from clickjoin.lake.restored import cut_short, half_restored
from clickjoin.lake.table_format import formats
from clickjoin.model.errors import LakeError
from clickjoin.registry.shards import start_timeline
from clickjoin.schemas import ALL, LATER, METRICS, TIMELINE
from clickjoin.schemas.format import FORMAT

if TYPE_CHECKING:
    from clickjoin.config import Pipeline


def initialise(pipeline: Pipeline, delta: DeltaTables | None = None, *, agreeing: bool = True) -> list[str]:
    """Create the tables that are not there yet; returns their names. `agreeing`: check that they fit together.

    Errors: LakeError where a table is gone from a lake that has been worked in (an empty one would let events through
    twice, or hide that some were lost), where one is older than the others (see agreement.rules), where a restore was
    cut short, where a table's format is newer than this program's, or where the adapter's columns do not fit `joined`;
    ConfigError where a column's type is not known.
    """
    delta = delta or DeltaTables(pipeline.root)
    adapter_of(with_types(pipeline, delta))  # before anything is made: they may be wrong
    known = formats(pipeline.root)
    there = list(known)
    missing = [table.name for table in ALL if table.name not in there]
    gone = [name for name in missing if name not in LATER]
    if gone and (half := half_restored(pipeline.root)):
        raise cut_short(pipeline.root, half)
    if gone and _worked_in(delta, there):
        raise LakeError(
            f"{pipeline.root}: table {', '.join(gone)} is missing from a lake that has been worked in",
            remedy=_remedy(gone),
        )
    if agreeing and there:
        require_agreement(delta, pipeline)
    # A table that comes to an older lake is of its format: older programs go on working in it until the upgrade.
    number = min(filter(None, known.values()), default=FORMAT)
    made = [table.name for table in ALL if table.name in missing and delta.create(table, number)]
    start_timeline(delta, pipeline, datetime.now(UTC))
    _add_columns(delta, with_types(pipeline, delta))
    return made


def _add_columns(delta: DeltaTables, pipeline: Pipeline) -> None:
    """Columns that the output gets from this pipeline, and those that tables of older lakes lack."""
    comments = {name: f"from {column.source}" for name, column in pipeline.output.columns.items()}
    whose = "the adapter" if pipeline.output.is_default else "output.columns"
    delta.add_columns("joined", dict(adapter_of(pipeline).columns), comments, whose=whose)
    for table in (METRICS, TIMELINE):
        delta.add_columns(table.name, {column.name: column.type for column in table.columns})


def _remedy(gone: list[str]) -> str:
    rebuilt = [
        f"`clickjoin {what} rebuild`"
        for what, name in (("journal", "journal"), ("registry", "registry"))
        if name in gone
    ]
    if len(rebuilt) == len(gone):
        return f"Restore it, or rebuild it with {', then '.join(rebuilt)}; an empty one is never begun by mistake"
    return "Restore it; an empty one is never begun by mistake"


def _worked_in(delta: DeltaTables, there: list[str]) -> bool:
    return any(delta.version(name) > 0 for name in there if name in ("journal", "registry")) or (
        "joined" in there and delta.rows("joined") > 0
    )
