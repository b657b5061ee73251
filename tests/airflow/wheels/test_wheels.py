"""The wheels in a company's own Airflow: no checkout, one DAG file of its own, its adapters in a folder."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from clickjoin import __version__
from clickjoin.model.dags import OF_EVERY_JOIN
from tests.airflow.wheels.conftest import Installed
from tests.sampled import in_full
from wheels.build import build

pytestmark = [pytest.mark.spark, pytest.mark.airflow, pytest.mark.slow]
ADAPTER = """\
from clickjoin.joiner.adapter import BothRecords


class Both(BothRecords):
    pass
"""
DAG_FILE = "from clickjoin_airflow import {name}\n\n{call}\n"


@pytest.fixture(scope="module")
def airflow(installed: Installed, write_pipeline: Callable[..., Path]) -> Callable[..., str]:
    """Runs Airflow's commands there, with two DAG files and two pipelines: shop, and bad, whose adapter is nowhere."""
    home, files = installed.home, installed.home / "etc/pipelines"
    write_pipeline(files, "shop", adapter="shop_adapters:Both", lease="3s")
    write_pipeline(files, "bad", adapter="no_such_module:Both")
    (home / "adapters/shop_adapters.py").write_text(ADAPTER)
    (home / "dags").mkdir()
    call = f"globals().update(dags_for({str(files)!r}))"
    (home / "dags/joins.py").write_text(DAG_FILE.format(name="dags_for", call=call))
    call = f"require_readable({str(files)!r})  # an import error here stops no DAG"
    (home / "dags/files.py").write_text(DAG_FILE.format(name="require_readable", call=call))
    connection = {"conn_type": "clickjoin", "extra": {"mode": "submit", "master": "local[2]"}}
    env = {
        "AIRFLOW_HOME": str(home / "airflow"), "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "AIRFLOW_CONN_CLICKJOIN_SPARK": json.dumps(connection),
        "CLICKJOIN_PIPELINES": str(files),
    }  # fmt: skip

    def run(*command: str, code: int = 0) -> str:
        return installed.run("airflow", *command, code=code, env=env)

    run("db", "migrate")
    run("dags", "reserialize")
    return run


def _json(output: str) -> list[dict[str, Any]]:
    """The list that a command printed between its warnings."""
    lines = output.splitlines()
    begun = next(index for index, line in enumerate(lines) if line.startswith("[{"))
    return list(json.loads(lines[begun]))


def _ids(folder: Path) -> list[dict[str, str]]:
    """The records of some logs."""
    lines = (line for file in sorted(folder.glob("*")) for line in file.read_text().splitlines())
    return [{"event_id": row["event_id"], "query_id": row.get("query_id", "")} for row in map(json.loads, lines)]


def test_the_same_files_make_the_same_wheels_and_each_names_the_other(wheels: list[Path], tmp_path: Path) -> None:
    assert [file.read_bytes() for file in build(tmp_path)] == [file.read_bytes() for file in wheels]
    texts = []
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            texts.append(archive.read(next(n for n in archive.namelist() if n.endswith("METADATA"))).decode())
    assert f"Requires-Dist: clickjoin-airflow=={__version__} ; extra == 'airflow'" in texts[0]
    assert f"Requires-Dist: clickjoin=={__version__}" in texts[1]
    assert all(f"Version: {__version__}\n" in text for text in texts)


def test_jars_are_said_to_lack_and_fetched_as_locked(installed: Installed) -> None:
    lacking = installed.run("clickjoin", "jars", code=1)
    assert "lacks delta-spark_4.2_2.13-" in lacking
    assert "`clickjoin jars --fetch` fetches them" in lacking
    found = json.loads(installed.run("clickjoin", "jars", "--fetch", "--json"))
    assert (len(found["fetched"]), found["lacking"]) == (7, [])
    store = Path(found["log_store"])
    assert store.is_relative_to(installed.python.parents[1])
    assert str(store) in found["jars"]
    assert found["conf"]["spark.delta.logStore.file.impl"] == "clickjoin.storage.LocalLogStore"
    assert [file.name for file in store.parent.rglob("*.java")]


def test_a_jar_that_is_another_is_said_and_put_right(installed: Installed) -> None:
    jar = next((installed.python.parents[1] / "share/clickjoin/jars").glob("delta-storage-*.jar"))
    jar.write_bytes(b"another")
    assert f"lacks {jar.name}, or has others" in installed.run("clickjoin", "jars", code=1)
    assert json.loads(installed.run("clickjoin", "jars", "--fetch", "--json"))["fetched"] == [jar.name]


def test_airflow_lists_provider_and_plugin(airflow: Callable[..., str]) -> None:
    providers = {row["package_name"]: row for row in _json(airflow("providers", "list", "-o", "json"))}
    assert providers["clickjoin-airflow"]["version"] == __version__
    (plugin,) = [row for row in _json(airflow("plugins", "-o", "json")) if row["name"] == "clickjoin"]
    assert plugin["source"].startswith(f"clickjoin-airflow=={__version__}: ")
    assert (len(plugin["operator_extra_links"]), plugin["fastapi_apps"][0]["url_prefix"]) == (2, "/clickjoin")


def test_airflow_lists_all_dags_and_the_adapter_that_is_nowhere(airflow: Callable[..., str]) -> None:
    listed = {row["dag_id"] for row in _json(airflow("dags", "list", "-o", "json"))}
    assert listed == {f"clickjoin_{dag}__{name}" for dag in OF_EVERY_JOIN for name in ("shop", "bad")}
    errors = _json(airflow("dags", "list-import-errors", "-o", "json", code=1))
    assert [Path(row["filepath"]).name for row in errors] == ["files.py"]
    assert "bad.yaml: adapter no_such_module:Both: cannot be imported" in errors[0]["error"]


@in_full
def test_a_task_of_airflow_joins_real_rows(installed: Installed, airflow: Callable[..., str]) -> None:
    files = installed.home / "etc/pipelines"
    installed.run(
        "clickjoin", "generate", str(files / "made"), "--clicks", "3000", "--queries", "1200", "--orphans", "0.05"
    )
    for name in ("queries", "clicks"):
        (files / "shop-logs" / name).mkdir(parents=True)
        for file in (files / "made" / name).iterdir():
            file.rename(files / "shop-logs" / name / f"{file.stem}.jsonl")
    assert "new_state=success" in airflow("dags", "test", "clickjoin_join__shop")
    queries = {row["event_id"] for row in _ids(files / "shop-logs/queries")}
    clicks = {row["event_id"]: row["query_id"] for row in _ids(files / "shop-logs/clicks")}
    wanted = {click for click, query in clicks.items() if query in queries}
    joined = DeltaTable(str(files / "lake/shop/joined")).to_pyarrow_table(columns=["event_id"])["event_id"].to_pylist()
    assert len(wanted) > 2000
    assert len(wanted) < len(clicks)
    assert sorted(joined) == sorted(wanted)
    status = json.loads(installed.run("clickjoin", "status", "--config", str(files / "shop.yaml"), "--json"))
    assert status["rows"]["joined"] == len(wanted)
