"""Raising a lake to the format of this program: what it takes, table by table, and doing it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clickjoin.lake import DeltaTables
from clickjoin.lake.requirements import require_lake
from clickjoin.lake.table_format import formats
from clickjoin.lake_setup import initialise
from clickjoin.model import failpoint
from clickjoin.schemas import ALL, METRICS, TIMELINE
from clickjoin.schemas.format import CHANGES, FORMAT

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.model.reporter import Reporter


@dataclass(frozen=True)
class Change:
    """What a table lacks: its format now (None: the table itself is to be made), and columns that are to be added."""

    table: str
    format: int | None
    columns: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """In a line."""
        added = f", with column {', '.join(self.columns)}" if self.columns else ""
        return f"{self.table}: " + ("is made" if self.format is None else f"format {self.format} to {FORMAT}{added}")


def changes(pipeline: Pipeline) -> list[Change]:
    """What an upgrade would do to a lake; nothing is written. Errors: LakeError for one that is newer, or not there."""
    require_lake(pipeline.root)
    known, delta = formats(pipeline.root), DeltaTables(pipeline.root)
    found = []
    for table in ALL:
        there = set(delta.columns(table.name)) if table.name in known and table in (METRICS, TIMELINE) else None
        lacking = tuple(name for name in table.names if there is not None and name not in there)
        if lacking or known.get(table.name) != FORMAT:
            found.append(Change(table.name, known.get(table.name), lacking))
    return found


def upgrade(pipeline: Pipeline, report: Reporter, *, apply: bool) -> dict[str, Any]:
    """Say what an upgrade would do, and do it where `apply`; cut short anywhere, another does the rest.

    Every process that works on the lake then commits nothing more (LakeReplaced) and is to start again: one that does
    not know the new format is refused. Errors: LakeError where tables do not fit together, as at any start.
    """
    todo = changes(pipeline)
    for change in todo:
        report(change.text)
    if apply and todo:
        _apply(pipeline)
    done = apply or not todo
    brings = {
        number: text
        for number, text in CHANGES.items()
        if number > min((c.format or FORMAT for c in todo), default=FORMAT)
    }
    return {"format": FORMAT, "changes": [asdict(change) for change in todo], "brings": brings, "applied": done}


def _apply(pipeline: Pipeline) -> None:
    delta = DeltaTables(pipeline.root)
    initialise(pipeline, delta)
    delta.replaces(f"upgrade to format {FORMAT}", datetime.now(UTC))
    for table in ALL:
        delta.set_format(table.name, FORMAT)
        failpoint.reach("upgraded-table")
