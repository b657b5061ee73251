"""Creating a pipeline's tables: once, by the first process that starts, and never over a lake that has lost one."""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from clickjoin.agreement.check import require_agreement
from clickjoin.config.output import DEFAULT_ADAPTER
from clickjoin.engines.choose import open_tables
from clickjoin.engines.tables_port import Tables
from clickjoin.joiner.adapter import adapter_of
from clickjoin.joiner.output_table import output_table, require_as_made, skipping_columns
from clickjoin.joiner.typed_output import with_types
from clickjoin.lake.readable import UnreadableLog
from clickjoin.lake.requirements import require_writable
from clickjoin.lake.restored import cut_short, half_restored
from clickjoin.lake.side_by_side import alongside
from clickjoin.lake.table_format import tables_of_format
from clickjoin.model.errors import LakeError
from clickjoin.registry.shards import start_timeline
from clickjoin.registry.zones import keep_zones
from clickjoin.schemas import ALL, BY_NAME, JOINED, METRICS, PRIMARY, Table

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

_log = logging.getLogger(__name__)


def initialise(pipeline: Pipeline, delta: Tables | None = None, *, agreeing: bool = True) -> list[str]:
    """Create the tables that are not there yet; returns their names. `agreeing`: check that they fit together.

    Errors: LakeError where a table is gone from a lake that has been worked in (an empty one would let events through
    twice, or hide that some were lost), where one is older than the others (see agreement.rules), where a restore was
    cut short, where a table is of another format, or where the adapter's columns do not fit `joined`.
    ConfigError where a column's type is not known, or where the lake was begun with another partition of the output.
    """
    delta = delta or open_tables(pipeline)
    fresh = delta if pipeline.needs_s3 and delta.is_blank else None
    with ExitStack() as looked:
        if pipeline.needs_s3:  # many looks take as long as one, and the probe is made beside them
            with alongside(partial(require_writable, pipeline.root)):
                looked.enter_context(delta.looked_at(*BY_NAME))
        try:
            return _initialise(pipeline, delta, fresh, agreeing=agreeing)
        except UnreadableLog:
            if agreeing:
                raise
            return []  # a torn log: verification says which, or repairs it


def _initialise(pipeline: Pipeline, delta: Tables, fresh: Tables | None, *, agreeing: bool) -> list[str]:
    there = tables_of_format(pipeline.root, fresh)
    gone = [table.name for table in ALL if table.name not in there]
    if half := half_restored(pipeline.root):
        raise cut_short(pipeline.root, half)
    if gone and _worked_in(delta, there):
        raise LakeError(
            f"{pipeline.root}: table {', '.join(gone)} is missing from a lake that has been worked in",
            remedy=_remedy(gone),
        )
    if agreeing and there:
        require_agreement(delta, pipeline, fresh)
    require_as_made(delta, pipeline)
    if gone and not pipeline.needs_s3:  # where it is on S3 it was looked at beside the tables
        require_writable(pipeline.root)
    adapter_of(with_types(pipeline, delta))  # before anything is made
    made = [name for name in gone if delta.create(_wanted(pipeline, BY_NAME[name]))]
    require_as_made(delta, pipeline)  # of two that begin a lake at once, by other files, one has made it
    now = datetime.now(UTC)
    start_timeline(delta, pipeline, now)
    _add_output_columns(delta, with_types(pipeline, delta))
    for table in (METRICS, PRIMARY):
        if (known := there.get(table.name)) and not set(table.names) <= known.keys():
            _add_columns(delta, table)
    _keep_engine(delta, pipeline)
    keep_zones(delta, pipeline.zones, now)
    return made


def _keep_engine(delta: Tables, pipeline: Pipeline) -> None:
    """Have the lake say which engine works on it; a change is announced."""
    if (before := delta.engine) != pipeline.engine:
        delta.set_engine(pipeline.engine)
        _log.warning("%s: engine %s was at work here, engine %s is from now on", delta.root, before, pipeline.engine)


def _wanted(pipeline: Pipeline, table: Table) -> Table:
    return output_table(pipeline) if table is JOINED else table


def _add_output_columns(delta: Tables, pipeline: Pipeline) -> None:
    """Columns that the output gets from this pipeline."""
    columns, output = dict(adapter_of(pipeline).columns), pipeline.output
    comments = dict.fromkeys(columns, f"made by adapter {pipeline.adapter}")
    if pipeline.adapter == DEFAULT_ADAPTER:
        comments = {name: f"the whole {name.replace('_', ' ')} as JSON text" for name in output.kept}
    comments |= {name: f"from {column.source}" for name, column in output.columns.items()}
    delta.add_columns("joined", columns, comments, whose=output.whose)
    delta.add_statistics("joined", skipping_columns(columns))


def _add_columns(delta: Tables, table: Table) -> None:
    """Columns of a table that a lake of an earlier release lacks."""
    types, comments = ({each.name: getattr(each, what) for each in table.columns} for what in ("type", "meaning"))
    delta.add_columns(table.name, types, comments, whose="clickjoin")


def _remedy(gone: list[str]) -> str:
    rebuilt = [
        f"`clickjoin {what} rebuild`"
        for what, name in (("journal", "journal"), ("registry", "registry"))
        if name in gone
    ]
    if len(rebuilt) == len(gone):
        return f"Restore it, or rebuild it with {', then '.join(rebuilt)}; an empty one is never begun by mistake"
    return "Restore it; an empty one is never begun by mistake"


def _worked_in(delta: Tables, there: Collection[str]) -> bool:
    return any(delta.version(name) > 0 for name in there if name in ("journal", "registry")) or (
        "joined" in there and delta.rows("joined") > 0
    )
