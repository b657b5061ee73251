"""The routes: pages and files, and what a pipeline's page asks for. All of them only read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, TypeVar

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from clickjoin.report.overview import WINDOWS
from clickjoin.report.processing import RANGES
from clickjoin_airflow.pipelines import BrokenFile, PipelineFile
from clickjoin_airflow.status import files
from clickjoin_airflow.status.access import FILES, PLACE, REQUIRED, FoundDep, Name, backfill_dag, may_backfill, may_read
from clickjoin_airflow.status.lanes import Lanes
from clickjoin_airflow.status.pipeline_view import PipelineView

T = TypeVar("T")

pages = APIRouter()
pipeline = APIRouter(prefix="/api/pipelines/{pipeline}", dependencies=[REQUIRED])


class _Reader:
    """The view of a request's pipeline, whose every answer is read in the pipeline's own lane."""

    def __init__(self, view: PipelineView, lanes: Lanes) -> None:
        self._view, self._lanes = view, lanes

    async def __call__(self, read: Callable[[PipelineView], T]) -> T:
        """What `read` makes of the view. Errors: Busy."""
        name = self._view.file.name
        return await self._lanes.run(name, f"pipeline {name}", lambda: read(self._view))


async def _reader(pipeline: Name, request: Request) -> _Reader:
    state = request.app.state
    found: PipelineView | None = await state.files.run(FILES, PLACE, lambda: state.views.get(pipeline))
    if found is None:
        raise HTTPException(404, f"No file in the pipelines' folder names pipeline {pipeline!r}")
    return _Reader(found, state.lanes)


ReaderDep = Annotated[_Reader, Depends(_reader)]
Text = Annotated[str, Query(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]


@pages.get("/")
def page() -> Response:
    """The page itself."""
    return files.page()


@pages.get("/static/{name:path}")
def static(name: str) -> Response:
    """What the page is made of."""
    return files.page_file(name)


@pages.get("/api/pipelines")
def pipelines(request: Request, user: GetUserDep, found: FoundDep) -> dict[str, Any]:
    """The pipelines that the user may see, and files that no pipeline can be made from."""
    return {
        "pipelines": [
            _described(file) | {"may_backfill": may_backfill(file.name, request, user)}
            for file in found.good
            if may_read(file.name, found, request, user)
        ],
        "broken": [_broken(file) for file in found.broken if may_read(file.name, found, request, user)],
        "windows": list(WINDOWS),
    }


def _described(file: PipelineFile) -> dict[str, Any]:
    return {
        "name": file.name,
        "tables": file.tables,
        "file": str(file.path),
        "backfill_dag": backfill_dag(file.name),
    }


def _broken(file: BrokenFile) -> dict[str, str]:
    return {"name": file.name, "file": str(file.path), "problem": file.problem}


@pipeline.get("/overview")
async def overview(ask: ReaderDep, hours: int = 24, replica: str = "") -> dict[str, Any]:
    """Figures by replica, and series for charts."""
    if hours not in WINDOWS:
        raise HTTPException(422, f"hours: write one of {', '.join(map(str, WINDOWS))}")
    return await ask(lambda view: view.overview(hours, replica))


@pipeline.get("/batches")
async def batches(ask: ReaderDep) -> list[dict[str, Any]]:
    """The newest batches."""
    return await ask(lambda view: view.batches())


@pipeline.get("/dates")
async def dates(ask: ReaderDep) -> dict[str, Any]:
    """Counts and state of each date."""
    return await ask(lambda view: view.dates())


@pipeline.get("/dates/{day}/checks")
async def checks(ask: ReaderDep, day: date) -> list[dict[str, Any]]:
    """Quality checks of a date."""
    return await ask(lambda view: view.checks_of(day))


@pipeline.get("/check")
async def check(ask: ReaderDep, name: Text) -> list[dict[str, Any]]:
    """What one quality check found at each date; `name`: as the pipeline's file names it, `table.check`."""
    return await ask(lambda view: view.check_over_dates(name))


@pipeline.get("/found")
async def found(ask: ReaderDep) -> dict[str, Any]:
    """Verifications and quality runs."""
    return await ask(lambda view: view.found())


@pipeline.get("/registry")
async def registry(ask: ReaderDep) -> dict[str, Any]:
    """The registry by bucket and shard."""
    return await ask(lambda view: view.registry())


@pipeline.get("/backlog")
async def backlog(ask: ReaderDep) -> dict[str, Any]:
    """What the sources hold and is not planned."""
    return await ask(lambda view: view.backlog())


@pipeline.get("/chain")
async def chain(request: Request, user: GetUserDep, found: FoundDep, ask: ReaderDep) -> list[dict[str, Any]]:
    """How the pipelines stand that this one is linked to, of those that the user may see."""
    parts = await ask(lambda view: view.chain())

    def seen() -> list[dict[str, Any]]:
        return [part for part in parts if may_read(part["pipeline"], found, request, user)]

    return await run_in_threadpool(seen)


@pipeline.get("/process")
async def process(ask: ReaderDep) -> dict[str, Any] | None:
    """How per-key processing stands, and what it has reported today; null of a pipeline without."""
    return await ask(lambda view: view.process())


@pipeline.get("/process/key")
async def key_chart(
    ask: ReaderDep,
    key: Annotated[str, Query(min_length=1, max_length=2000)],
    span: Annotated[str, Query(alias="range")] = "",
) -> dict[str, Any]:
    """Counts of one key over time, what was expected, and its signals."""
    if span not in RANGES:
        raise HTTPException(422, f"range: write one of {', '.join(filter(None, RANGES))}")
    return await ask(lambda view: view.key_chart(key, span))


@pipeline.get("/explain")
async def explain(ask: ReaderDep, event_id: Text) -> dict[str, Any]:
    """Where an event is."""
    return await ask(lambda view: view.explain(event_id))
