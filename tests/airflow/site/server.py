"""Airflow with the status page, on a lake made by hand; no Spark. Shared by all tests that look at the page."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from bootstrap import ROOT
from stack import Stack, web
from tests.airflow.site.lake import Shop
from tests.airflow.site.trends import trends

USERS = "admin:admin,looker:viewer,guest:viewer,viewer:viewer,user:user,op:op"
_open = build_opener(ProxyHandler({})).open


class Site:
    """A running Airflow; `shop` is whole, `lost` reads it and has no lake of its own, a log of `torn` is broken.

    The output of `trends` was processed by key.
    """

    def __init__(self, stack: Stack, shop: Shop, folder: Path) -> None:
        self.stack, self.shop, self.folder = stack, shop, folder
        self.url = stack.airflow_url

    def password(self, user: str) -> str:
        """A user's password."""
        return str(json.loads(self.stack.home.passwords.read_text())[user])

    def token(self, user: str) -> str:
        """Airflow's token for a user."""
        body = {"username": user, "password": self.password(user)}
        return str(web.request(f"{self.url}/auth/token", "POST", body)["access_token"])

    def ask(self, path: str, token: str | None = None, method: str = "GET") -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers of a route below /clickjoin."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            with _open(
                Request(f"{self.url}/clickjoin{quote(path, safe='/?=&%')}", None, headers, method=method)
            ) as answer:
                return answer.status, answer.read(), {name.lower(): value for name, value in answer.headers.items()}
        except HTTPError as error:
            return error.code, error.read(), {name.lower(): value for name, value in error.headers.items()}


def chained(file: Path, upstream: str) -> None:
    """Let a pipeline's queries be the output of another, of lake `./lake`."""
    text, source = file.read_text(), f"{{kind: pipeline, name: {upstream}, lake: ./lake}}"
    file.write_text(re.sub(r"source: .*queries.*", f"source: {source}", text))


@contextmanager
def site(folder: Path, write_pipeline: Callable[..., Path], dags: Path | None = None) -> Iterator[Site]:
    """Start it; everything stops at the end of the block. `dags`: a folder of them, else there are none."""
    shop = Shop(folder / "lake/shop", datetime.now(UTC))
    with write_pipeline(folder, "shop").open("a") as file:
        file.write("process: {key: primary_id}\n")
    chained(write_pipeline(folder, "lost", lake="./nowhere"), "shop")
    write_pipeline(folder, "torn")
    torn = Shop(folder / "lake/torn", datetime.now(UTC))
    log = Path(torn.delta.path("metrics"), "_delta_log")
    for commit in log.glob("*.json"):
        commit.write_text("{broken")
    trends(folder)
    (folder / "half.yaml").write_text("pipeline: [")
    paths = (ROOT / name for name in ("spark_apps", "plugins", ""))
    env = {
        "PYTHONPATH": os.pathsep.join(str(path) for path in paths),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": USERS,
        "AIRFLOW__CORE__AUTH_MANAGER": "tests.airflow.site.team.TeamAuthManager",
    }
    if dags is None:  # the page needs none to be read, and backfills are started on real ones
        dags = folder / "dags"
        dags.mkdir()
    with Stack(folder / "home", spark_connect=False, pipelines=folder, dags=dags, env=env) as stack:
        yield Site(stack, shop, folder)
