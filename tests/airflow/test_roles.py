"""Each of Airflow's roles at each route of the status page and each form, as docs/access.md says, in this process.

Airflow's own auth manager decides, on a database of its own.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from airflow.api_fastapi.app import create_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.api_fastapi.core_api.security import get_user
from fastapi import FastAPI, Request

from bootstrap import INFRA, ROOT
from bootstrap.once import fingerprint
from clickjoin.config import load
from clickjoin.engines.arrow import ArrowTables
from clickjoin.processing.tables import open_tables
from clickjoin.processors import TumblingCounts
from clickjoin.schemas import ALL
from clickjoin_airflow.status.access import allowed
from clickjoin_airflow.status.app import create
from stack import Stack, airflow, airflow_settings
from tests.airflow.roles import FORM, ROLES, ROUTE, table

DOCS = table()
PATIENCE = 2.0
ASKING = 60  # more than the threads that an ASGI app shares with all others of its process
VALUES = {"pipeline": "shop", "day": "2026-03-01"}
QUERIES = {"/explain": "?event_id=x", "/process/key": "?key=x", "/check": "?name=x"}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, write_pipeline: Callable[..., Path]) -> Iterator[FastAPI]:
    """The page's app on pipelines `shop` and `hung`; of the latter a file in each table's log has no end."""
    folder = tmp_path_factory.mktemp("roles")
    for name in ("shop", "hung"):
        write_pipeline(folder, name)
        delta = ArrowTables(f"{folder}/lake/{name}")
        for kind in ALL:
            delta.create(kind)
    with next(folder.glob("**/shop.yaml")).open("a") as file:
        file.write('process: {key: event_id, processor: "clickjoin.processors:TumblingCounts"}\n')
    open_tables(load(next(folder.glob("**/shop.yaml"))), TumblingCounts.state, "{}")
    pipes = [log / "_last_checkpoint" for log in (folder / "lake/hung").glob("*/_delta_log")]
    for pipe in pipes:
        os.mkfifo(pipe)
    stack = Stack(folder / "home", spark_connect=False)
    stack.home.make()
    env = airflow_settings.environment(stack.env, stack.home, 8080, folder, folder)
    empty = airflow._empty_database(stack.home, env, fingerprint(INFRA / "requirements.lock"))
    shutil.copyfile(empty, Path(os.environ["AIRFLOW_HOME"], "airflow.db"))
    create_auth_manager()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLICKJOIN_PIPELINES", str(folder))
        made = create()
        made.state.lanes.patience = PATIENCE
        yield made
    for pipe in pipes:  # whoever reads has an end now
        os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))


def user(role: str | None) -> SimpleAuthManagerUser:
    return SimpleAuthManagerUser(username=role or "nobody", role=role and role.upper())


def paths(app: FastAPI) -> dict[str, str]:
    """An address for every route that the app has."""
    found = {}
    for route in app.routes:
        template = str(getattr(route, "path", ""))
        query = next((query for end, query in QUERIES.items() if template.endswith(end)), "")
        found[template] = template.replace("{name:path}", "main.js").format(**VALUES) + query
    return found


def ask(app: FastAPI, role: str | None, work: Callable[[httpx.AsyncClient], Any]) -> Any:
    """What `work` makes of a client that is logged in with a role, or with none."""

    async def run() -> Any:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://airflow") as client:
            return await work(client)

    app.dependency_overrides[get_user] = lambda: user(role)
    return asyncio.run(run())


def test_the_table_has_every_route_and_every_form(app: FastAPI) -> None:
    forms = {f"{FORM}{path.stem}__<pipeline>" for path in (ROOT / "dags").glob("*.py") if path.stem != "broken"}
    assert set(DOCS) == {f"{ROUTE}{template}" for template in paths(app)} | forms
    assert len(DOCS) >= 22


@pytest.mark.parametrize("role", ROLES)
def test_routes(app: FastAPI, role: str) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        for template, path in paths(app).items():
            expected = DOCS[f"{ROUTE}{template}"][role]
            status = (await client.get(path)).status_code
            assert (status == 200) is expected, (template, status)
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                assert (await client.request(method, path)).status_code == 405, template

    ask(app, role, work)


@pytest.mark.parametrize("role", ROLES)
def test_forms(role: str, app: FastAPI) -> None:
    request = Request({"type": "http", "path_params": {}, "query_string": b"", "headers": []})
    for name, roles in DOCS.items():
        if name.startswith(FORM):
            dag = name.replace("<pipeline>", "shop")
            assert allowed(request, user(role), "POST", dag, DagAccessEntity.RUN) is roles[role], name


def test_nobody_without_a_role_sees_a_pipeline(app: FastAPI) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        for template, path in paths(app).items():
            if "{pipeline}" in template:
                assert (await client.get(path)).status_code == 403, template
        assert (await client.get("/api/pipelines")).json()["pipelines"] == []

    ask(app, None, work)


def test_a_hanging_disk_leaves_the_threads_to_others(app: FastAPI) -> None:
    async def work(client: httpx.AsyncClient) -> tuple[list[httpx.Response], float, httpx.Response, float]:
        hung = [asyncio.create_task(client.get("/api/pipelines/hung/overview")) for _ in range(ASKING)]
        await asyncio.sleep(0.5)
        begun = time.monotonic()
        # Served by a thread of the pool that all apps share, as most of Airflow's own routes are.
        shared = await asyncio.wait_for(client.get("/"), 20)
        well = await asyncio.wait_for(client.get("/api/pipelines/shop/dates"), 20)
        took = time.monotonic() - begun
        assert (shared.status_code, well.status_code) == (200, 200)
        answers = list(await asyncio.gather(*hung))
        begun = time.monotonic()
        last = await client.get("/api/pipelines/hung/overview")
        return answers, took, last, time.monotonic() - begun

    answers, took, last, refused_after = ask(app, "viewer", work)
    print(f"others are answered after {took:.2f} s beside {ASKING} requests that hang")
    assert {(one.status_code, one.headers["retry-after"]) for one in answers} == {(503, "30")}
    messages = {re.sub(r"\d+", "N", one.json()["problem"]["message"]) for one in answers}
    assert messages == {"pipeline hung: no answer within N s", "pipeline hung: N requests wait already"}
    assert (last.status_code, refused_after < PATIENCE) == (503, True)
    assert "has been read for" in last.json()["problem"]["message"]
