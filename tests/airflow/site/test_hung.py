"""A disk that hangs behind the status page: its pipeline says so in time, and all else of Airflow's API goes on."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import ProxyHandler, build_opener

import pytest

from clickjoin_airflow.status.lanes import PATIENCE

if TYPE_CHECKING:
    from tests.airflow.site.server import Site

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

ASKING = 60  # more than the threads that Airflow's API has in all
OTHERS = ("/api/v2/version", "/execution/health", "/api/v2/monitor/health")
PARTS = ("overview", "batches", "found", "dates", "registry", "backlog", "explain?event_id=x")
_open = build_opener(ProxyHandler({})).open


@pytest.fixture
def hung(site: Site, write_pipeline: Callable[..., Path]) -> Iterator[Path]:
    """Pipeline `hung`: a whole lake, but for a file in the log of each table, whose reading does not end."""
    lake = site.folder / "lake/hung"
    shutil.copytree(site.folder / "lake/shop", lake)
    pipes = [log / "_last_checkpoint" for log in lake.glob("*/_delta_log")]
    for pipe in pipes:
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
    file = write_pipeline(site.folder, "hung")
    yield file
    file.unlink()
    for pipe in pipes:  # whoever reads has an end now
        os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))


def test_a_hanging_disk_stops_no_more_than_its_pipeline(site: Site, hung: Path) -> None:
    token = site.token("admin")
    for path in OTHERS:
        with _open(
            f"{site.url}{path}", timeout=60
        ) as answer:  # what Airflow builds when it is first asked for is built
            assert answer.status == 200

    def ask(number: int) -> tuple[int, dict[str, str], str, float]:
        begun = time.monotonic()
        status, body, headers = site.ask(f"/api/pipelines/hung/{PARTS[number % len(PARTS)]}", token)
        return status, headers, body.decode(), time.monotonic() - begun

    with ThreadPoolExecutor(ASKING) as pool:
        answers = [pool.submit(ask, number) for number in range(ASKING)]
        time.sleep(2)  # by now all that can be taken is taken
        for path in OTHERS:
            begun = time.monotonic()
            with _open(f"{site.url}{path}", timeout=15) as answer:
                assert answer.status == 200
            print(f"{path} answers after {time.monotonic() - begun:.2f} s beside {ASKING} requests that hang")
        for part in PARTS[:-1]:
            assert site.ask(f"/api/pipelines/shop/{part}", token)[0] == 200
        assert site.ask("/", token)[0] == 200
        assert site.ask("/api/pipelines", token)[0] == 200
        found = [answer.result() for answer in answers]
    for status, headers, body, seconds in found:
        assert (status, headers["retry-after"]) == (503, "30"), body
        assert json.loads(body)["problem"]["message"].startswith("pipeline hung: ")
        assert seconds < 2 * PATIENCE
    status, _, body, seconds = ask(0)
    assert (status, seconds < 5) == (503, True)
    assert "has been read for" in body
