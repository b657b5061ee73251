"""What `make up` is asked for: what goes together, what stays as it was, what is refused, and what no line shows."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from bootstrap import ROOT, Problem
from stack import Stack, airflow, airflow_settings, processes
from stack import __main__ as command
from stack.home import Home
from stack.setup import Setup

CELERY = {"DATABASE": "postgres", "EXECUTOR": "celery", "SCHEDULERS": "2"}
URL = "postgresql://me:hush@db.example.org:5433/air?sslmode=require"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.make()
    return home


def env_of(home: Home, setup: Setup) -> dict[str, str]:
    ports = {"spark": 15002, "postgres": 15432, "redis": 16379}
    return airflow_settings.environment({}, home, 8080, ROOT / "dags", ROOT / "plugins", setup=setup, ports=ports)


@pytest.mark.parametrize(("said", "why"), [
    ({"EXECUTOR": "celery"}, "EXECUTOR=celery keeps results in Airflow's database, which cannot be SQLite: add DATA"),
    ({"SCHEDULERS": "2"}, "SCHEDULERS=2 cannot work on SQLite, where schedulers cannot lock rows: add DATABASE"),
    ({"DATABASE": "postgres", "WORKERS": "2"}, "WORKERS: schedulers run all tasks themselves; add EXECUTOR=celery"),
    ({"DATABASE": "postgres", "BROKER": "redis://h"}, "BROKER: schedulers run all tasks themselves"),
    ({**CELERY, "BROKER": "rabbit"}, "BROKER is rabbit: write redis, or the URL"),
    ({"EXECUTOR": "kubernetes"}, "EXECUTOR is kubernetes: write local or celery"),
    ({**CELERY, "SCHEDULERS": "0"}, "SCHEDULERS is 0: write a number from 1"),
    ({**CELERY, "WORKERS": "two"}, "WORKERS is two: write a number from 1"),
    ({"DATABASE": "mysql://me:hush@h/d"}, r"DATABASE is mysql://h/d: write sqlite, postgres, or postgresql\+psycopg2://"),
])  # fmt: skip
def test_what_cannot_work_is_refused(said: dict[str, str], why: str) -> None:
    with pytest.raises(Problem, match=f"^{why}") as caught:
        Setup.given(said)
    assert "hush" not in str(caught.value)


def test_what_is_not_said_stays_as_it_was() -> None:
    before = Setup.given(CELERY | {"WORKERS": "3", "BROKER": "redis://:x@h:1/0"})
    assert Setup.given({}, before) == before
    assert Setup.given({"SCHEDULERS": "1"}, before) == Setup("postgres", "celery", 1, 3, "redis://:x@h:1/0")
    assert Setup.given({"EXECUTOR": "local"}, before) == Setup("postgres", "local", 2)
    assert Setup.given({"DATABASE": "sqlite"}, before) == Setup.given({}) == Setup()


def test_it_is_remembered_in_a_private_file(home: Home) -> None:
    assert Setup.of(home) is None
    (home.folder / "airflow").mkdir()
    (home.folder / "airflow/airflow.db").touch()  # of a version that knew no other
    assert Setup.of(home) == Setup()
    made = Setup.given(CELERY | {"DATABASE": URL})
    made.remember(home)
    assert Setup.of(Home(home.folder)) == made
    assert stat.S_IMODE((home.folder / "setup.json").stat().st_mode) == 0o600
    assert "hush" not in f"{made}{made.rows(home)}"


def test_celery_needs_no_file_of_this_machine(home: Home) -> None:
    env = env_of(home, Setup.given(CELERY | {"DATABASE": URL}))
    assert env["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] == URL.replace("postgresql", "postgresql+psycopg2")
    assert env["AIRFLOW__CELERY__RESULT_BACKEND"] == "db+" + URL.replace("postgresql", "postgresql+psycopg2")
    assert env["AIRFLOW__CELERY__BROKER_URL"] == f"redis://:{home.secret('redis')}@127.0.0.1:16379/0"
    said = json.loads(env["AIRFLOW_CONN_CLICKJOIN_SPARK"])
    assert said == {
        "conn_type": "clickjoin",
        "host": "localhost",
        "port": 15002,
        "password": home.secret("spark_connect"),
    }
    assert "url_file" in env_of(home, Setup())["AIRFLOW_CONN_CLICKJOIN_SPARK"]


def test_parts(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server alone holds Spark's token; each worker has a name, and none serves logs on all interfaces."""
    setup, started = Setup.given(CELERY | {"WORKERS": "2"}), dict[str, tuple[list[str], dict[str, str]]]()
    monkeypatch.setattr(airflow.processes, "start", lambda name, line, env, *_: started.update({name: (line, env)}))
    list(airflow.start(home, 8080, env_of(home, setup), setup, ["triggerer"]))
    parts = ["scheduler", "scheduler-2", "dag-processor", "api-server", "worker", "worker-2", "triggerer"]
    assert list(started) == parts
    holders = [name for name, (_, env) in started.items() if home.secret("spark_connect") in "".join(env.values())]
    assert holders == ["api-server"]
    assert [started[name][0][-1] for name in ("worker", "worker-2")] == ["worker@%h", "worker-2@%h"]
    servers = {"scheduler", "scheduler-2", "worker", "worker-2", "triggerer"}
    assert {name for name, (line, _) in started.items() if "--skip-serve-logs" in line} == servers
    lines = " ".join(part for line, _ in started.values() for part in line)
    assert not any(home.secret(name) in lines for name in ("redis", "postgres", "spark_connect"))
    assert airflow.parts(Setup.given({})) == ["scheduler", "dag-processor", "api-server"]


def test_the_users_own_settings_are_passed_on(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__PARALLELISM", "77")  # also in the file of settings
    monkeypatch.setenv("AIRFLOW__SMTP__SMTP_HOST", "mail")
    for name in ("AIRFLOW_HOME", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW__CORE__DAGS_FOLDER", "AIRFLOW_CONN_X"):
        monkeypatch.setenv(name, "/another")
    env = env_of(home, Setup())
    assert (env["AIRFLOW__CORE__PARALLELISM"], env["AIRFLOW__SMTP__SMTP_HOST"]) == ("77", "mail")
    assert "/another" not in env.values()  # they say where another installation has its things
    assert airflow_settings.unheeded(env) == ["AIRFLOW__CORE__DAGS_FOLDER", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]


def test_what_runs_is_left_as_it_is(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Setup().remember(home)
    server = processes.start("scheduler", ["sleep", "60"], {}, home.folder, home.folder / "log")
    home.write([server], {"spark": 15002, "airflow": 8080})
    try:
        monkeypatch.setenv("DATABASE", "postgres")
        assert command.main(["up", "--home", str(home.folder)]) == 1
        said = capsys.readouterr().err
        assert "it runs with DATABASE=sqlite EXECUTOR=local SCHEDULERS=1, not DATABASE=postgres" in said
        assert "make down first" in said
        assert server.alive()
        assert Setup.of(home) == Setup()
        assert Stack(home.folder).setup == Setup()
    finally:
        processes.stop([server])
