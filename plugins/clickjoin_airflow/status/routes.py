"""The routes: pages and files, and what a pipeline's page asks for. All of them only read."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response

from clickjoin.report.overview import WINDOWS
from clickjoin_airflow.pipelines import BrokenFile, PipelineFile
from clickjoin_airflow.status import files
from clickjoin_airflow.status.access import REQUIRED, Name, backfill_dag, may_backfill, may_read
from clickjoin_airflow.status.desk import Desk

pages = APIRouter()
pipeline = APIRouter(prefix="/api/pipelines/{pipeline}", dependencies=[REQUIRED])


def _desk(pipeline: Name, request: Request) -> Desk:
    found: Desk | None = request.app.state.desks.get(pipeline)
    if found is None:
        raise HTTPException(404, f"No file in the pipelines' folder names pipeline {pipeline!r}")
    return found


DeskDep = Annotated[Desk, Depends(_desk)]
Text = Annotated[str, Query(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]


@pages.get("/")
def page() -> Response:
    """The page itself."""
    return files.page()


@pages.get("/static/{name:path}")
def static(name: str) -> Response:
    """What the page is made of."""
    return files.page_file(name)


@pages.get("/report/{pipeline}/{name:path}", dependencies=[REQUIRED])
def report(name: str, desk: DeskDep) -> Response:
    """A file of a quality report."""
    return files.report_file(desk.file.tables, name)


@pages.get("/api/pipelines")
def pipelines(request: Request, user: GetUserDep) -> dict[str, Any]:
    """The pipelines that the user may see, and files that no pipeline can be made from."""
    found = request.app.state.desks.found()
    return {
        "pipelines": [
            _described(file) | {"may_backfill": may_backfill(file.name, request, user)}
            for file in found.good
            if may_read(file.name, request, user)
        ],
        "broken": [_broken(file) for file in found.broken if may_read(file.name, request, user)],
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
def overview(desk: DeskDep, hours: int = 24, replica: str = "") -> dict[str, Any]:
    """Figures by replica, and series for charts."""
    if hours not in WINDOWS:
        raise HTTPException(422, f"hours: write one of {', '.join(map(str, WINDOWS))}")
    return desk.overview(hours, replica)


@pipeline.get("/batches")
def batches(desk: DeskDep) -> list[dict[str, Any]]:
    """The newest batches."""
    return desk.batches()


@pipeline.get("/dates")
def dates(desk: DeskDep) -> dict[str, Any]:
    """Counts and state of each date."""
    return desk.dates()


@pipeline.get("/dates/{day}/checks")
def checks(desk: DeskDep, day: date) -> list[dict[str, Any]]:
    """Quality checks of a date."""
    return desk.checks_of(day)


@pipeline.get("/found")
def found(desk: DeskDep) -> dict[str, Any]:
    """Verifications and quality runs."""
    return desk.found()


@pipeline.get("/reports")
def reports(desk: DeskDep, folder: Text) -> dict[str, Any]:
    """The pages of a quality report."""
    return {"pages": files.report_pages(desk.file.tables, folder)}


@pipeline.get("/registry")
def registry(desk: DeskDep) -> dict[str, Any]:
    """The registry by bucket and shard."""
    return desk.registry()


@pipeline.get("/backlog")
def backlog(desk: DeskDep) -> dict[str, Any]:
    """What the sources hold and is not planned."""
    return desk.backlog()


@pipeline.get("/explain")
def explain(desk: DeskDep, event_id: Text) -> dict[str, Any]:
    """Where an event is."""
    return desk.explain(event_id)
