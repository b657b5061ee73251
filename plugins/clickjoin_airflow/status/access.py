"""Who may see what: a pipeline is shown to those who may read the DAG that joins it. Airflow decides, as everywhere."""

from __future__ import annotations

from typing import Annotated

from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import Depends, HTTPException, Path, Request

from clickjoin_airflow.pipelines import Found

# The lane in which the pipelines' files are read, and what it is called where they cannot be.
FILES, PLACE = "files", "the pipelines' files"
Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9_.-]{1,100}$")]


def join_dag(pipeline: str, group: str = "") -> str:
    """The DAG that anyone who sees a pipeline may read: the one that joins it, alone or with its group."""
    return f"clickjoin_join_group__{group}" if group else f"clickjoin_join__{pipeline}"


def backfill_dag(pipeline: str) -> str:
    """The DAG that anyone who starts a backfill may run."""
    return f"clickjoin_backfill__{pipeline}"


def allowed(
    request: Request, user: GetUserDep, method: ResourceMethod, dag: str, entity: DagAccessEntity | None = None
) -> bool:
    """Whether Airflow lets a user do this with a DAG."""
    try:
        requires_access_dag(method, entity, dag)(request, user)
    except HTTPException:
        return False
    return True


def may_read(pipeline: str, found: Found, request: Request, user: GetUserDep) -> bool:
    """Whether a user may see a pipeline."""
    return allowed(request, user, "GET", join_dag(pipeline, found.group_of(pipeline)))


def may_backfill(pipeline: str, request: Request, user: GetUserDep) -> bool:
    """Whether a user may start a backfill of a pipeline."""
    return allowed(request, user, "POST", backfill_dag(pipeline), DagAccessEntity.RUN)


async def _found(request: Request) -> Found:
    found: Found = await request.app.state.files.run(FILES, PLACE, request.app.state.views.found)
    return found


FoundDep = Annotated[Found, Depends(_found)]


def _require(pipeline: Name, request: Request, user: GetUserDep, found: FoundDep) -> None:
    requires_access_dag("GET", None, join_dag(pipeline, found.group_of(pipeline)))(request, user)


# On every route that names a pipeline.
REQUIRED = Depends(_require)
