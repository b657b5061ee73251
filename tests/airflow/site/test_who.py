"""Each of Airflow's roles at each route of the status page and at each form, as the table in docs/access.md says."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

import pytest

from bootstrap import ROOT
from stack import web
from tests.airflow.roles import FORM, ROLES, ROUTE, table
from tests.airflow.site.test_status import paths

if TYPE_CHECKING:
    from tests.airflow.site.server import Site

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

CONF = {"backfill": {"from": "2026-03-01"}}
DAG_WAIT = 180.0


DOCS = table()


@pytest.fixture(scope="module")
def tokens(site: Site) -> dict[str, str]:
    """A user of each role."""
    return {role: site.token(role) for role in ROLES}


@pytest.fixture(scope="module")
def forms(site: Site, tokens: dict[str, str]) -> list[str]:
    """The product's own DAGs on the site, once Airflow knows those of pipeline `shop`; all are paused."""
    for file in (ROOT / "dags").glob("*.py"):
        shutil.copy(file, site.folder / "dags")
    wanted = {f"{FORM}{path.stem}__shop" for path in (ROOT / "dags").glob("*.py")} - {f"{FORM}broken__shop"}
    end, known = time.monotonic() + DAG_WAIT, set[str]()
    while not wanted <= known:
        assert time.monotonic() < end, wanted - known
        time.sleep(1)
        found = web.request(f"{site.url}/api/v2/dags?tags=shop&limit=50", token=tokens["admin"])["dags"]
        known = {dag["dag_id"] for dag in found}
    return sorted(known)


def test_the_table_has_every_route_and_every_form(site: Site, forms: list[str]) -> None:
    routes = {f"{ROUTE}{template}" for template in paths(site)}
    assert set(DOCS) == routes | {name.replace("__shop", "__<pipeline>") for name in forms}


@pytest.mark.parametrize("role", ROLES)
def test_routes(site: Site, tokens: dict[str, str], role: str) -> None:
    for template, path in paths(site).items():
        allowed = DOCS[f"{ROUTE}{template}"][role]
        assert (site.ask(path, tokens[role])[0] == 200) is allowed, template
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert site.ask(path, tokens[role], method)[0] == 405, template


@pytest.mark.parametrize("role", ROLES)
def test_forms(site: Site, tokens: dict[str, str], forms: list[str], role: str) -> None:
    for dag in forms:
        allowed = DOCS[dag.replace("__shop", "__<pipeline>")][role]
        conf = CONF.get(dag.removeprefix(FORM).partition("__")[0], {})
        status = post(site, f"dags/{dag}/dagRuns", tokens[role], {"logical_date": None, "conf": conf})
        assert status == (200 if allowed else 403), dag


@pytest.mark.parametrize("role", ROLES)
def test_the_page_offers_what_airflow_allows(site: Site, tokens: dict[str, str], role: str) -> None:
    found = web.request(f"{site.url}/clickjoin/api/pipelines", token=tokens[role])
    offered = {one["may_backfill"] for one in found["pipelines"]}
    assert offered == {DOCS["clickjoin_backfill__<pipeline>"][role]}


def test_a_form_takes_no_replica_that_is_no_name(site: Site, tokens: dict[str, str], forms: list[str]) -> None:
    for dag in forms:
        for name in ("../x", "a/b", "A", "x" * 64, "{{ var.value.x }}"):
            conf = {**CONF.get(dag.removeprefix(FORM).partition("__")[0], {}), "replica": name}
            status = post(site, f"dags/{dag}/dagRuns", tokens["admin"], {"logical_date": None, "conf": conf})
            assert status == 400, (dag, name)


def post(site: Site, path: str, token: str, body: Any) -> int:
    """The status of what Airflow's API answers."""
    try:
        web.request(f"{site.url}/api/v2/{path}", "POST", body, token)
    except HTTPError as error:
        return error.code
    return 200
