"""Whether a process works on a lake, as far as its tables tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from clickjoin.backup.snapshot import under_way
from clickjoin.lake.location import location
from clickjoin.lake.snapshot_files import LOG, PinnedTables, look
from clickjoin.model.errors import BatchError, ClickjoinError
from clickjoin.schemas import ALL
from clickjoin.schemas.process import FOLDER, PROCESS

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.model.batch_plan import BatchPlan

_COMMITTED = timedelta(seconds=60)
_STOP = (
    "Stop every run, drain, process and gc of the pipeline, and pause its DAGs in Airflow (airflow dags pause "
    "--treat-dag-id-as-regex 'clickjoin_.*__{}'); where nothing runs any more, `clickjoin drain` finishes it, or "
    "--force goes on"
)


def require_idle(pipeline: Pipeline, now: datetime) -> None:
    """Check that nothing was committed within a minute, and that every batch is settled. Errors: BatchError.

    However old a plan is, a process that was paused may go on with it. A lake that cannot be read says nothing: it is
    what one restores for.
    """
    remedy = _STOP.format(pipeline.pipeline)
    for name in (*(table.name for table in ALL), *(f"{FOLDER}/{table.name}" for table in PROCESS)):
        age = now - _last_commit(pipeline.root, name)
        if age < _COMMITTED:
            raise BatchError(f"{pipeline.root}/{name}: was committed to {age.total_seconds():.0f} s ago", remedy=remedy)
    try:
        plans = [plan for root in (pipeline.root, f"{pipeline.root}/{FOLDER}") for plan in _under_way(pipeline, root)]
    except ClickjoinError:
        return
    if plans:
        tokens = ", ".join(plan.token for plan in plans)
        raise BatchError(f"{pipeline.root}: batch {tokens} is under way", remedy=remedy)


def _under_way(pipeline: Pipeline, root: str) -> list[BatchPlan]:
    seen = look(root, "journal")
    return under_way(PinnedTables(root, {"journal": seen.version}), pipeline.pipeline) if seen else []


def _last_commit(root: str, name: str) -> datetime:
    seen = look(root, name)
    file = location(f"{root}/{name}/{LOG}").stored(f"{seen.version:020}.json") if seen else None
    return datetime.fromtimestamp(file.at if file else 0, UTC)
