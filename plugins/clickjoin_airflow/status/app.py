"""The page's app: every route asks Airflow who the user is, and whether this user may see the pipeline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import JSONResponse

from clickjoin.model.errors import ClickjoinError
from clickjoin_airflow.status import files, routes
from clickjoin_airflow.status.lanes import Busy, Lanes
from clickjoin_airflow.status.pipeline_views import PipelineViews

_AGAIN = 30  # seconds
_ASKED = 200  # requests that may wait for the pipelines' files to be read, which is quick
_HEADERS = {
    "Content-Security-Policy": files.POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def create() -> FastAPI:
    """The app. It has GET routes only: what changes anything is asked of Airflow's own API, by the browser."""
    app = FastAPI(title="clickjoin", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(get_user)])
    app.state.lanes = Lanes()
    app.state.files = Lanes(queue=_ASKED, most=1)  # so that lakes that hang do not hold up finding the others
    app.state.views = PipelineViews(app.state.lanes)
    app.include_router(routes.pages)
    app.include_router(routes.pipeline)
    app.add_exception_handler(ClickjoinError, _problem)
    app.middleware("http")(_secured)
    return app


async def _secured(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await answer(request)
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _problem(request: Request, error: Exception) -> JSONResponse:
    """A table or file that cannot be read: 503 with what and where it is, and what to do."""
    remedy = getattr(error, "remedy", "")
    message = str(error).removesuffix(f". {remedy}")
    problem = {"pipeline": request.path_params.get("pipeline"), "message": message, "remedy": remedy}
    headers = {"Retry-After": str(_AGAIN)} if isinstance(error, Busy) else None
    return JSONResponse({"problem": problem}, status_code=503, headers=headers)
