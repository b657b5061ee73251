"""The project of Great Expectations of a lake on S3: worked on in a copy, fetched, edited, and put back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clickjoin.config import Pipeline
from clickjoin.lake.location import location
from clickjoin.model.errors import LakeError
from clickjoin.quality import place
from clickjoin.quality.project import Project
from clickjoin.quality.suites import Facts, shipped
from stack.gateway import Gateway
from tests.unit.lakes import pipeline
from tests.unit.test_quality_project import NONE

RESULT = "uncommitted/validations/joined/2026-03-01/202603{}T000000.000000Z/x.json"
EMPTY = {"suite_name": "joined", "success": True, "results": [], "statistics": {}, "meta": {}}
SUITE = "expectations/joined.json"


@pytest.fixture(scope="module", autouse=True)
def bucket(gateway: Gateway) -> Iterator[None]:
    gateway.bucket("projects")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in gateway.environment().items():
            patch.setenv(name, value)
        yield


@pytest.fixture
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Pipeline:
    found = pipeline(tmp_path, lake=f"s3://projects/{request.node.name}")
    _run(found)
    return found


def _run(there: Pipeline, day: str = "01", meanwhile: Any = lambda: None) -> None:
    """What a run does, with a result in place of Spark's work."""
    with place.opened(there) as project:
        assert project.bring_up_to_date(shipped(there, Facts(NONE))) == {}
        file = project.folder / RESULT.format(day)
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(EMPTY))
        meanwhile()
    assert not project.folder.exists()


def _suite(there: Pipeline) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(location(place.root_of(there)).read(SUITE) or b"")
    return found


def _edit(there: Pipeline) -> None:
    held = _suite(there)
    held["expectations"].pop()
    location(place.root_of(there)).replace(SUITE, json.dumps(held).encode())


def test_a_run_puts_back_its_suites_and_results(there: Pipeline) -> None:
    whole = len(_suite(there)["expectations"])
    _edit(there)
    _run(there, "09")
    assert len(_suite(there)["expectations"]) == whole - 1  # what somebody took out stays out
    names = {file.path for file in location(place.root_of(there)).listed()}
    assert {RESULT.format("01"), RESULT.format("09")} <= names
    with place.opened(there) as project:
        assert project.docs == ""
        project.drop_before(datetime(2026, 3, 5, tzinfo=UTC))
    names = {file.path for file in location(place.root_of(there)).listed()}
    assert RESULT.format("01") not in names
    assert RESULT.format("09") in names


def test_an_edit_beside_a_run_is_kept(there: Pipeline) -> None:
    whole = len(_suite(there)["expectations"])
    _run(there, "09", lambda: _edit(there))
    assert len(_suite(there)["expectations"]) == whole - 1


def test_fetched_edited_and_put_back(there: Pipeline, tmp_path: Path) -> None:
    files, docs = place.fetch(there, tmp_path / "mine")
    assert (files, Path(docs).name) == (31, "index.html")
    location(place.root_of(there)).write(RESULT.format("05"), b"{}")
    assert place.fetch(there, tmp_path / "yours")[1].startswith("Great Expectations cannot build them (")
    for name in ("mine", "yours"):
        copy = Project(tmp_path / name / "gx", there)
        assert (copy.folder / RESULT.format("01")).exists()
        held = json.loads((copy.folder / SUITE).read_text())
        held["expectations"].pop()
        (copy.folder / SUITE).write_text(json.dumps(held))
    _run(there, "09")
    assert place.put_back(there, tmp_path / "mine") == [SUITE]
    before = _suite(there)
    with pytest.raises(LakeError, match=r"expectations/joined\.json: someone else has edited it"):
        place.put_back(there, tmp_path / "yours")
    assert _suite(there) == before
