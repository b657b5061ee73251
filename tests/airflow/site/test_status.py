"""The status page's routes on a real API server: none answers a stranger, each answers who may read the pipeline."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from clickjoin_airflow.status.app import create
from tests.airflow.site.trends import EVIL

if TYPE_CHECKING:
    from tests.airflow.site.server import Site

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

PIPELINE = "/api/pipelines/{pipeline}"
QUERIES = {"/explain": "?event_id={event}", "/check": "?name=joined.completeness", "/process/key": "?key=shoes"}


def paths(site: Site, pipeline: str = "shop") -> dict[str, str]:
    """An address for every route that the app has, mounted apps too."""
    values = {"event": site.shop.event, "pipeline": pipeline, "day": str(site.shop.dates[0])}
    found = {}
    for route in create().routes:
        template = getattr(route, "path", "")
        values["pipeline"] = "trends" if template.endswith("/process/key") else pipeline
        query = next((query for end, query in QUERIES.items() if template.endswith(end)), "")
        found[template] = template.replace("{name:path}", "main.js").format(**values) + query.format(**values)
    return found


@pytest.fixture(scope="module")
def admin(site: Site) -> str:
    return site.token("admin")


def get(site: Site, path: str, token: str) -> Any:
    status, body, _ = site.ask(path, token)
    assert status == 200, body
    return json.loads(body)


def test_no_route_answers_a_stranger(site: Site) -> None:
    found = paths(site)
    assert len(found) >= 13
    for template, path in found.items():
        assert site.ask(path)[0] == 401, template
        assert site.ask(path, "not-a-token")[0] in (401, 403), template


def test_each_route_answers_who_is_logged_in(site: Site, admin: str) -> None:
    for template, path in paths(site).items():
        status, body, headers = site.ask(path, admin)
        assert status == 200, (template, body)
        assert "default-src" in headers["content-security-policy"], template
        assert headers["x-content-type-options"] == "nosniff"


def test_nothing_can_be_changed_through_the_page(site: Site, admin: str) -> None:
    for path in paths(site).values():
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert site.ask(path, admin, method)[0] == 405


def test_a_pipeline_is_shown_to_readers_of_its_dag(site: Site) -> None:
    guest, looker = site.token("guest"), site.token("looker")
    assert [one["name"] for one in get(site, "/api/pipelines", guest)["pipelines"]] == ["lost"]
    seen = get(site, "/api/pipelines", looker)
    assert sorted(one["name"] for one in seen["pipelines"]) == ["lost", "shop", "torn", "trends"]
    assert {one["may_backfill"] for one in seen["pipelines"]} == {False}
    assert [one["name"] for one in seen["broken"]] == ["half"]
    for template, path in paths(site).items():
        if "{pipeline}" in template:
            assert site.ask(path, guest)[0] == 403, template
            assert site.ask(path, looker)[0] == 200, template
    assert site.ask("/api/pipelines/lost/overview", guest)[0] == 503  # may be seen, cannot be read


def test_what_it_says(site: Site, admin: str) -> None:
    base = "/api/pipelines/shop"
    whole = get(site, f"{base}/overview?hours=24", admin)
    assert sorted(whole["replicas"]) == ["main", "west"]
    assert whole["replicas"]["main"]["latency"]["p90"] == 2.5
    assert sum(whole["series"]["joined"]) == sum(part["day"]["joined"] for part in whole["replicas"].values())
    dates = get(site, f"{base}/dates", admin)
    states = [one["state"] for one in dates["dates"]]
    assert states == ["closed", "closed", "closed", "failing", "open"]
    assert [one["joined"] for one in dates["dates"]] == [3] * 5
    red = get(site, f"{base}/dates/{site.shop.dates[3]}/checks", admin)
    assert (red[0]["outcome"], red[0]["check"]) == ("failed", "clicks_follow_their_query")
    over = get(site, f"{base}/check?name=joined.completeness", admin)
    assert [one["outcome"] for one in over] == ["passed", "passed", "passed", "failed"]
    assert get(site, f"{base}/check?name=nothing", admin) == []
    explained = get(site, f"{base}/explain?event_id={site.shop.event}", admin)
    assert explained["state"] == "joined"
    assert [step["table"] for step in explained["history"]] == ["foreign", "registry", "joined"]
    assert get(site, f"{base}/registry", admin)["shards"]["0"]["rows"] == 15
    found = get(site, f"{base}/found", admin)
    assert (len(found["quality"]), found["frequent_ids"]) == (4, [])


def test_what_it_says_of_processing(site: Site, admin: str) -> None:
    assert get(site, "/api/pipelines/torn/process", admin) is None  # it has no such section
    unused = get(site, "/api/pipelines/shop/process", admin)
    assert (unused["status"]["batch"], unused["today"]["rows"]) == (0, [])
    found = get(site, "/api/pipelines/trends/process", admin)
    assert found["today"]["count"] == len(found["today"]["rows"]) == sum(found["today"]["kinds"].values())
    assert found["today"]["kinds"] == {"spike": 2, "dip": 1}
    assert found["status"]["stream"] == "stream"
    assert found["status"]["place"] == str(site.folder / "logs/today.jsonl")
    chart = get(site, f"/api/pipelines/trends/process/key?key={EVIL}", admin)
    assert (chart["key"], chart["signals"][0]["kind"]) == (EVIL, "spike")
    assert json.loads(site.ask("/api/pipelines/shop/process/key?key=a", admin)[1])["problem"]["remedy"].startswith(
        "Run `clickjoin process`"
    )


def test_a_chain_has_those_that_the_user_may_see(site: Site, admin: str) -> None:
    for asked in ("shop", "lost"):
        shop, lost = get(site, f"/api/pipelines/{asked}/chain", admin)
        assert (shop["pipeline"], shop["reads"], shop["joined"]) == ("shop", {}, 15)
        assert (lost["pipeline"], lost["reads"]) == ("lost", {"primary": "shop"})
        assert lost["problem"].startswith(f"{site.folder}/nowhere")
    assert [one["pipeline"] for one in get(site, "/api/pipelines/lost/chain", site.token("guest"))] == ["lost"]
    assert get(site, "/api/pipelines/torn/chain", admin) == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/pipelines/shop/overview?hours=7", 422),
        ("/api/pipelines/trends/process/key", 422),
        ("/api/pipelines/trends/process/key?key=", 422),
        ("/api/pipelines/trends/process/key?key=a&range=1y", 422),
        ("/api/pipelines/shop/explain", 422),
        ("/api/pipelines/shop/explain?event_id=", 422),
        ("/api/pipelines/shop/explain?event_id=a%0Ab", 422),
        (f"/api/pipelines/shop/explain?event_id={'x' * 501}", 422),
        ("/api/pipelines/shop/dates/yesterday/checks", 422),
        ("/api/pipelines/nobody/overview", 404),
        ("/static/../app.py", 404),
        ("/static/%2e%2e/app.py", 404),
        ("/api/pipelines/shop/check", 422),
    ],
)
def test_bad_questions(site: Site, admin: str, path: str, status: int) -> None:
    assert site.ask(path, admin)[0] == status


def test_a_lake_that_cannot_be_read(site: Site, admin: str) -> None:
    status, body, _ = site.ask("/api/pipelines/lost/overview", admin)
    problem = json.loads(body)["problem"]
    assert (status, problem["pipeline"]) == (503, "lost")
    assert problem["message"] == f"{site.folder}/nowhere: the lake's folder is not there"
    assert problem["remedy"].startswith("Mount it where Airflow's API server runs")
    status, body, _ = site.ask("/api/pipelines/torn/overview", admin)
    problem = json.loads(body)["problem"]
    assert problem["message"].startswith(f"{site.folder}/lake/torn/metrics: its log or its files are damaged")
    assert site.ask("/api/pipelines/torn/dates", admin)[0] == 200  # what can be read is shown


def test_a_table_that_is_replaced_is_seen(site: Site, admin: str) -> None:
    base, root = "/api/pipelines/shop/registry", site.folder / "lake/shop"
    (root / "registry").rename(root / "aside")
    assert "the table is missing" in json.loads(site.ask(base, admin)[1])["problem"]["message"]
    (root / "aside").rename(root / "registry")
    assert get(site, base, admin)["shards"]["0"]["rows"] == 15


def test_it_is_quick_when_warm(site: Site, admin: str) -> None:
    begun = time.perf_counter()
    for part in ("overview", "batches", "dates", "found", "registry"):
        get(site, f"/api/pipelines/shop/{part}", admin)
    print(f"all parts of the page take {time.perf_counter() - begun:.2f} s")
