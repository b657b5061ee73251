"""The DAGs, as Airflow imports them. No server runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clickjoin.jobs.all_jobs import JOBS, entry
from clickjoin.model.dags import OF_EVERY_JOIN
from clickjoin.model.errors import ConfigError
from clickjoin_airflow import ClickjoinOperator
from tests.airflow.conftest import CHAINED

ROOT = Path(__file__).resolve().parents[2]
DAGS = sorted(path.stem for path in (ROOT / "dags").glob("*.py") if path.stem != "broken")


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory, write_pipeline: Callable[..., Path]) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("pipelines")
    for name in ("clicks", "ads"):
        write_pipeline(folder, name, lease="30s")
    with (folder / "ads.yaml").open("a") as file:
        file.write("process: {key: foreign_record.item_id}\n")
    (folder / "sales.yaml").write_text(CHAINED.format(name="sales", upstream="clicks"))
    for twin in ("copy.yaml", "twin.yaml"):
        write_pipeline(folder, "twice", file=twin)
    (folder / "half.yaml").write_text("pipeline: [")
    (folder / "no-name.yml").write_text("lake: ./lake")
    (folder / "notes.txt").write_text("not a pipeline")
    env = {**os.environ, "CLICKJOIN_PIPELINES": str(folder), "CLICKJOIN_REPLICA": "east"}
    env |= {"AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    command = [sys.executable, str(Path(__file__).with_name("dump_dags.py")), str(ROOT / "dags")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout.splitlines()[-1]), "folder": str(folder)}


def test_import_takes_under_a_second_and_starts_no_spark(imported: dict[str, Any]) -> None:
    print(f"importing dags/ takes {imported['seconds']:.3f} s")
    assert imported["seconds"] < 1
    assert imported["heavy"] == []


def test_every_pipeline_has_its_dags(imported: dict[str, Any]) -> None:
    names = {f"clickjoin_{dag}__{name}" for dag in OF_EVERY_JOIN for name in ("clicks", "ads", "sales")}
    names.add("clickjoin_process__ads")
    assert {*OF_EVERY_JOIN, "process"} == set(DAGS)
    broken = {name for name, dag in imported["dags"].items() if "broken" in dag["tags"]}
    assert set(imported["dags"]) - broken == names


def test_every_task_runs_a_job_of_the_table(imported: dict[str, Any]) -> None:
    named = {job for dag in imported["dags"].values() for job in dag["jobs"]}
    assert named <= JOBS.keys()
    from_a_shell = {"backfill", "drain", "forget", "quality", "rebuild", "run"}
    assert JOBS.keys() - named == from_a_shell | {"join_group"}  # no file here names a group
    assert entry().is_file()


def test_every_form_is_the_jobs(imported: dict[str, Any]) -> None:
    for name in ("join", "retry", "redrive", "process", "gc", "reshard", "verify", "close_day", "reclose_changed"):
        asked = {item.option_name: item for item in JOBS[name].form}
        params = imported["dags"][f"clickjoin_{name}__ads"]["params"]
        assert params.keys() == asked.keys() | {"replica"} | ({"lease"} if JOBS[name].leased else set())
        for field, item in asked.items():
            assert params[field].items() >= {"title": item.title, **item.schema()}.items()


def test_a_name_that_is_no_job_is_an_import_error() -> None:
    with pytest.raises(ConfigError, match="'days' is no job of clickjoin"):
        ClickjoinOperator(task_id="days", job="days", config="/p.yaml")
    with pytest.raises(ConfigError, match="job gc takes no 'waits'"):
        ClickjoinOperator(task_id="gc", job="gc", config="/p.yaml", arguments={"waits": 1})


@pytest.mark.parametrize(
    ("job", "timetable", "params"),
    [
        ("join", "DeltaTriggerTimetable", {"lease", "replica"}),
        ("retry", "DeltaTriggerTimetable", {"lease", "replica"}),
        ("redrive", "NullTimetable", {"replica"}),
        ("process", "DeltaTriggerTimetable", {"rebuild", "check", "lease", "replica"}),
        ("gc", "DeltaTriggerTimetable", {"dry_run", "wait", "replica"}),
        ("reshard", "NullTimetable", {"shards", "from", "replica"}),
    ],
)
def test_shape(imported: dict[str, Any], job: str, timetable: str, params: set[str]) -> None:
    dag = imported["dags"][f"clickjoin_{job}__ads"]
    assert (dag["timetable"], dag["tasks"], set(dag["params"])) == (timetable, [job], params)
    most = 2 if job in ("join", "process") else 1  # the next one gets ready while the one before works
    assert (dag["max_active_runs"], dag["at_once"], dag["catchup"]) == (most, most, False)
    assert (dag["owner"], dag["tags"]) == ("clickjoin", sorted(["clickjoin", job, "ads"]))
    assert dag["doc"].startswith("###")
    assert dag["timeout"] == 5 * 30 + 600
    assert dag["run_timeout"] >= dag["timeout"]
    assert dag["retries"] > 100
    assert dag["max_failures"] == 3
    assert f"{imported['folder']}/lake/ads" in dag["description"]
    assert dag["start"] < "2026"
    assert dag["serialized"] > 0


def test_a_verification_goes_on_whatever_it_finds(imported: dict[str, Any]) -> None:
    dag = imported["dags"]["clickjoin_verify__ads"]
    assert (dag["timetable"], dag["tasks"]) == ("DeltaTriggerTimetable", ["verify"])
    assert set(dag["params"]) == {"from", "to", "repair", "remove_doubles", "replica"}
    assert (dag["max_failures"], dag["max_active_runs"], dag["timeout"]) == (0, 1, 7200)


@pytest.mark.parametrize("job", ["join", "retry"])
def test_output_is_an_asset(imported: dict[str, Any], job: str) -> None:
    uri = f"file://{imported['folder']}/lake/clicks/joined"
    assert imported["dags"][f"clickjoin_{job}__clicks"]["outlets"] == [["clicks/joined", uri]]


def test_signals_are_an_asset_made_of_the_output(imported: dict[str, Any]) -> None:
    dag = imported["dags"]["clickjoin_process__ads"]
    uri = f"file://{imported['folder']}/lake/ads/process/signals"
    assert dag["outlets"] == [["ads/process/signals", uri]]
    assert dag["inlets"] == imported["dags"]["clickjoin_join__ads"]["outlets"]


def test_an_upstreams_output_starts_the_next_pipeline(imported: dict[str, Any]) -> None:
    """And the clock does, for the records of its own logs; what it reads of the other is its lineage."""
    dag = imported["dags"]["clickjoin_join__sales"]
    upstream = imported["dags"]["clickjoin_join__clicks"]["outlets"]
    assert dag["timetable"] == "AssetOrTimeSchedule"
    assert dag["asset_uris"] == [uri for _, uri in upstream]
    assert dag["inlets"] == upstream
    assert (dag["max_active_runs"], dag["at_once"]) == (1, 1)
    assert imported["dags"]["clickjoin_retry__sales"]["inlets"] == []


def test_broken_files_stop_no_other_and_are_seen(imported: dict[str, Any]) -> None:
    assert set(imported["errors"]) == {"broken.py"}
    for file, words in (("half.yaml", "line 1, column 12"), ("no-name.yml", "pipeline: None is no name")):
        dag = imported["dags"][f"clickjoin_join__{file.partition('.')[0]}"]
        assert dag["tags"] == ["broken", "clickjoin", "join"]
        assert (dag["timetable"], dag["tasks"]) == ("NullTimetable", ["join"])
        assert words in dag["doc"]
        assert file in imported["errors"]["broken.py"]
        assert words in imported["errors"]["broken.py"]


def test_two_files_of_one_name(imported: dict[str, Any]) -> None:
    assert "clickjoin_join__twice" not in imported["dags"]
    for file, other in (("copy", "twin"), ("twin", "copy")):
        dag, words = imported["dags"][f"clickjoin_join__{file}"], f"pipeline twice is in {other}.yaml too"
        assert dag["tags"] == ["broken", "clickjoin", "join"]
        assert words in dag["doc"]
        assert words in imported["errors"]["broken.py"]
