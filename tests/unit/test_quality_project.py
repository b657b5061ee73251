"""The project of Great Expectations: what a run brings up to date, and what people have made there, which it keeps."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from clickjoin.config.quality import SIDES
from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.quality import place, project
from clickjoin.quality.history import History
from clickjoin.quality.project import Project
from clickjoin.quality.shipped import Shipped
from clickjoin.quality.suites import Facts, shipped
from tests.unit.lakes import pipeline

NONE = History((), date(2026, 3, 1), 0, 1)
TOKEN = "joined.not_null.token"


def wanted(tmp_path: Path, **changes: Any) -> list[Shipped]:
    """What is shipped; `changes`: arguments of the check of tokens."""
    made = shipped(pipeline(tmp_path), Facts(NONE))
    return [Shipped(**{**one.__dict__, "args": {**one.args, **changes}}) if one.check == TOKEN else one for one in made]


def brought(tmp_path: Path, made: list[Shipped]) -> Project:
    with place.opened(pipeline(tmp_path)) as found:
        assert found.bring_up_to_date(made) == {}
    return found


def suite(found: Project, name: str = "joined") -> dict[str, Any]:
    held: dict[str, Any] = json.loads((found.folder / f"expectations/{name}.json").read_text())
    return held


def checks(found: Project) -> dict[str, Any]:
    return {one["meta"]["clickjoin"]["check"]: one["kwargs"] for one in suite(found)["expectations"]}


def edit(found: Project, change: Any) -> None:
    held = suite(found)
    change(held["expectations"])
    (found.folder / "expectations/joined.json").write_text(json.dumps(held))


def test_a_run_brings_it_up_to_date(tmp_path: Path) -> None:
    found = brought(tmp_path, wanted(tmp_path))
    assert found.checkpoints() == ["joined", "primary", "foreign", "registry", *SIDES, "ids", "batches"]
    assert checks(found)[TOKEN] == {"column": "token"}
    ids = {one["id"] for one in suite(found)["expectations"]}
    before = {str(path): path.read_bytes() for path in found.folder.rglob("*.json")}
    brought(tmp_path, wanted(tmp_path))
    assert {str(path): path.read_bytes() for path in found.folder.rglob("*.json")} == before
    brought(tmp_path, wanted(tmp_path, mostly=0.5))
    assert checks(found)[TOKEN] == {"column": "token", "mostly": 0.5}
    assert {one["id"] for one in suite(found)["expectations"]} == ids
    brought(tmp_path, [one for one in wanted(tmp_path) if one.check != TOKEN])
    assert TOKEN not in checks(found)


def test_what_people_made_there_is_kept(tmp_path: Path) -> None:
    """Theirs, one of ours that they edited, and one that they took out."""
    found = brought(tmp_path, wanted(tmp_path))
    own = {
        "type": "expect_column_to_exist",
        "kwargs": {"column": "x"},
        "meta": {},
        "id": "5f7bd9b6-4b24-4a3f-9a3b-0b3a2b6b0c11",
        "severity": "warning",
    }

    def change(held: list[dict[str, Any]]) -> None:
        held.append(own)
        held[:] = [one for one in held if one["kwargs"].get("column") != "primary_id"]
        next(one for one in held if one["kwargs"] == {"column": "token"})["kwargs"]["mostly"] = 0.9

    edit(found, change)
    assert [one["kwargs"] for one in found.theirs()["joined"]] == [{"column": "token", "mostly": 0.9}, {"column": "x"}]
    for _ in range(2):
        brought(tmp_path, wanted(tmp_path, mostly=0.5))
        held = suite(found)["expectations"]
        assert {"column": "token", "mostly": 0.9} in [one["kwargs"] for one in held]
        assert {"column": "x"} in [one["kwargs"] for one in held]
        assert {"column": "primary_id"} not in [one["kwargs"] for one in held]
        (edited,) = (one for one in held if one["kwargs"].get("mostly"))
        assert edited["meta"]["clickjoin"]["edited"]


def test_a_suite_that_is_broken_stops_no_other(tmp_path: Path) -> None:
    found = brought(tmp_path, wanted(tmp_path))
    (found.folder / "expectations/joined.json").write_text("{broken")
    with place.opened(pipeline(tmp_path)) as again:
        broken = again.bring_up_to_date(wanted(tmp_path, mostly=0.5))
    assert list(broken) == ["joined"]
    assert broken["joined"]
    assert (found.folder / "expectations/joined.json").read_text() == "{broken"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "while parsing a flow"),
        ("a: 1", "Great Expectations cannot open it"),
        ("plugins_directory: plugins/", "code that lies in a lake is not run"),
        ("stores: {a: {class_name: X, module_name: os}}", "module_name: os: only Great Expectations' own"),
        ("x: [{module_name: great_expectations_evil}]", "only Great Expectations' own"),
    ],
)
def test_a_file_that_cannot_be_opened_says_so(tmp_path: Path, text: str, message: str) -> None:
    found = brought(tmp_path, wanted(tmp_path))
    (found.folder / "great_expectations.yml").write_text(text)
    with (
        pytest.raises(ConfigError, match=rf"great_expectations\.yml: .*{message}"),
        place.opened(pipeline(tmp_path)) as again,
    ):
        again.bring_up_to_date(wanted(tmp_path))


def test_a_checkpoint_makes_no_class_of_others(tmp_path: Path) -> None:
    """A renderer of an action is made by module and name, with arguments: it could be any command."""
    ran = tmp_path / "ran"
    found = brought(tmp_path, wanted(tmp_path))
    renderer = {"module_name": "subprocess", "class_name": "Popen", "args": ["touch", str(ran)]}
    path = found.folder / "checkpoints/joined.json"
    action = {"name": "a", "type": "slack", "slack_webhook": "http://127.0.0.1:9", "renderer": renderer}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"actions": [action]}))
    with (
        place.opened(pipeline(tmp_path)) as again,
        pytest.raises(ConfigError, match=r"joined\.json: module_name: subprocess: only Great Expectations' own"),
    ):
        again.run("joined", "2026-03-01")
    assert not ran.exists()


def test_one_run_at_a_time_writes_to_it(tmp_path: Path) -> None:
    inside, most = [], []

    def enter(number: int) -> None:
        with place.opened(pipeline(tmp_path)):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.05)
            inside.remove(number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(enter, range(6)))
    assert most == [1] * 6


def test_a_place_that_is_taken(tmp_path: Path) -> None:
    there = pipeline(tmp_path)
    Path(there.root).mkdir(parents=True)
    (Path(there.root) / "_quality").write_text("")
    with pytest.raises(LakeError, match=r"quality results cannot be written there \(.*_quality is no folder"):
        place.require_writable(there)


def test_fetched_edited_and_put_back(tmp_path: Path) -> None:
    there, folder = pipeline(tmp_path), tmp_path / "mine"
    with pytest.raises(LakeError, match="there is no project yet"):
        place.fetch(there, folder)
    found = brought(tmp_path, wanted(tmp_path))
    place.fetch(there, folder)
    assert (folder / "gx/uncommitted/data_docs/local_site/index.html").exists()
    assert place.put_back(there, folder) == []
    copy = Project(folder / "gx", there)
    edit(copy, lambda held: held.pop())
    brought(tmp_path, wanted(tmp_path, mostly=0.5))  # a run in between is no edit of anybody's
    assert place.put_back(there, folder) == ["expectations/joined.json"]
    assert len(suite(found)["expectations"]) == len(suite(copy)["expectations"])
    brought(tmp_path, wanted(tmp_path, mostly=0.5))
    assert len(suite(found)["expectations"]) == len(suite(copy)["expectations"])


def test_edits_of_two_are_refused(tmp_path: Path) -> None:
    there, mine = pipeline(tmp_path), tmp_path / "mine"
    found = brought(tmp_path, wanted(tmp_path))
    place.fetch(there, mine)
    edit(Project(mine / "gx", there), lambda held: held.pop())
    edit(found, lambda held: held.pop(0))
    before = suite(found)
    with pytest.raises(LakeError, match=r"expectations/joined\.json: someone else has edited it"):
        place.put_back(there, mine)
    assert suite(found) == before
    with pytest.raises(LakeError, match="it holds something else"):
        place.fetch(there, tmp_path / "lake")
    with pytest.raises(LakeError, match="no project which"):
        place.put_back(there, tmp_path)


def test_old_results_go(tmp_path: Path) -> None:
    found = brought(tmp_path, wanted(tmp_path))
    kept = []
    for part in ("uncommitted/validations", project.SITE + "/validations"):
        for day in ("01", "09"):
            file = found.folder / part / f"joined/__none__/202603{day}T000000.000000Z/x.json"
            file.parent.mkdir(parents=True)
            file.write_text("{}")
            kept += [file] if day == "09" else []
    found.drop_before(datetime(2026, 3, 5, tzinfo=UTC))
    assert sorted(found.folder.rglob("x.json")) == sorted(kept)
