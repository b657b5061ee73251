"""What a stack is started with: loopback alone, secrets in private files, no other installation's settings."""

import sqlite3
import stat
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from bootstrap import INFRA, ROOT, Problem
from stack import Stack, airflow, airflow_settings, processes, spark
from stack import __main__ as command
from stack.airflow_settings import DATABASE
from stack.home import Home, clean_environment, write_private
from stack.setup import Setup


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.make()
    return home


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_connect_url_is_private_and_says_localhost(home):
    spark.publish(home, 15002)
    head, _, token = home.connect_url.read_text().partition("=")
    # With a token and any other host name PySpark asks for TLS, which the server does not speak.
    assert head == "sc://localhost:15002/;token"
    # PySpark splits the address at each `=`.
    assert token.isalnum()
    assert mode(home.connect_url) == 0o600
    assert mode(home.folder) == 0o700


@pytest.mark.parametrize("held", ["notes.txt", ".ssh", "airflow"])
def test_a_folder_of_somebodys_is_left_as_it_is(tmp_path, held):
    folder = tmp_path / "somebodys"
    folder.mkdir()
    folder.chmod(0o755)  # whatever the umask is
    (folder / held).mkdir()
    for begin in (Home(folder).make, lambda: Stack(folder).start(), lambda: Stack(folder).stop()):
        with pytest.raises(
            Problem, match=f"somebodys: is no stack's folder, and holds {held}; name a folder that is not"
        ):
            begin()
    assert mode(folder) == 0o755
    assert [path.name for path in folder.iterdir()] == [held]


def test_an_empty_folder_is_taken_if_nobody_else_sees_into_it(tmp_path):
    for bits, taken in ((0o700, True), (0o750, False), (0o755, False)):
        folder = tmp_path / f"{bits:o}"
        folder.mkdir()
        folder.chmod(bits)
        if not taken:
            with pytest.raises(Problem, match="is open to other users; chmod 700 it, or name a folder"):
                Home(folder).make()
        else:
            Home(folder).make()
            (folder / "more").touch()
            folder.chmod(0o755)
            Home(folder).make()  # its own: closed again
        assert mode(folder) == (0o700 if taken else bits)
    (tmp_path / "file").touch()
    with pytest.raises(Problem, match="file: cannot be used"):
        Home(tmp_path / "file").make()


def test_secrets_stay_the_same(home):
    assert home.secret("jwt") == Home(home.folder).secret("jwt") != home.secret("api")
    assert mode(home.folder / "secrets.json") == 0o600


def test_private_file_is_replaced_whole(tmp_path):
    for text in ("one", "two"):
        write_private(tmp_path / "secret", text)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("secret", "two")]


def test_other_installations_do_not_leak_in(monkeypatch):
    for name in ("SPARK_HOME", "AIRFLOW_HOME", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "PYSPARK_PYTHON", "PYTHONPATH"):
        monkeypatch.setenv(name, "/another")
    assert "/another" not in clean_environment().values()


def test_loopback_is_kept_off_a_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "example.org")
    assert clean_environment()["NO_PROXY"] == "example.org,localhost,127.0.0.1"


def test_servers_listen_on_loopback(home):
    settings = dict(line.split() for line in spark.DEFAULTS.read_text().splitlines() if line and line[0] != "#")
    assert settings["spark.connect.grpc.binding.address"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert airflow.PARTS["api-server"][1:3] == ["--host", "127.0.0.1"]
    # Otherwise it serves logs on all interfaces.
    assert "--skip-serve-logs" in airflow.PARTS["scheduler"]
    env = airflow_settings.environment({}, home, 8080, ROOT / "dags", ROOT / "plugins")
    assert env["AIRFLOW__API__BASE_URL"] == "http://127.0.0.1:8080"


def test_parts_wait_for_each_others_transactions(home, monkeypatch):
    """With SQLite's own five seconds, a scheduler died while 30 joins began."""
    database = home.folder / "airflow/airflow.db"
    (home.folder / "airflow").mkdir()
    with closing(sqlite3.connect(database)) as made, made:
        made.execute("CREATE TABLE slot_pool (pool UNIQUE, slots, description, include_deferred)")
    monkeypatch.setattr(airflow, "_make_tables", lambda *_: None)
    env = airflow_settings.environment({}, home, 8080, ROOT / "dags", ROOT / "plugins")
    airflow.prepare(home, env, Setup())
    with closing(sqlite3.connect(database)) as opened:
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert env["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] == f"sqlite:///{database}?timeout=60"
    started = dict[str, str]()
    monkeypatch.setattr(
        airflow.processes, "start", lambda name, command, env, *_: started.update({name: env[DATABASE]})
    )
    assert list(airflow.start(home, 8080, env, Setup())) == [None] * 3
    assert {name: url.rpartition("=")[2] for name, url in started.items()} == {
        "scheduler": "60", "dag-processor": "60", "api-server": "5"
    }  # fmt: skip


def test_on_a_cluster_address_and_secret_are_the_users(home, monkeypatch):
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    env = {"CLICKJOIN_SPARK_MASTER": "spark://head:7077"}
    line = spark.command(home, 15002, env)
    assert line[line.index("--master") + 1] == "spark://head:7077"
    assert "--load-spark-defaults" in line
    file = Path(line[line.index("--properties-file") + 1])
    names = {one.split()[0] for one in file.read_text().splitlines() if one and one[0] != "#"}
    assert not names & {"spark.authenticate", "spark.driver.host", "spark.driver.bindAddress"}
    assert {"spark.delta.logStore.file.impl", "spark.connect.grpc.binding.address"} <= names
    own = spark.environment(env, home)
    assert (own["SPARK_CONF_DIR"], own["PYSPARK_PYTHON"]) == ("/etc/spark", "/opt/python")
    alone = spark.environment({}, home)
    assert "SPARK_CONF_DIR" not in alone
    assert alone["PYSPARK_PYTHON"] != "/opt/python"
    assert "--load-spark-defaults" not in spark.command(home, 15002, {})


def test_driver_memory_can_be_set(home):
    assert "2g" in spark.command(home, 15002, {"CLICKJOIN_DRIVER_MEMORY": "2g"})


def test_stack_that_was_not_started(tmp_path):
    stack = Stack(tmp_path / "home")
    assert not stack.running
    with pytest.raises(Problem, match=r"^no Airflow was started"):
        _ = stack.airflow_url
    with pytest.raises(Problem, match=r"^no Spark Connect server was started"):
        _ = stack.connect_url
    stack.stop()


def test_status_fails_unless_all_runs(home, tmp_path, capsys):
    status = ["status", "--home", str(home.folder)]
    assert command.main(status) == 1
    assert capsys.readouterr().out == "not running; make up starts it\n"
    servers = [
        processes.start(name, ["sleep", "60"], {}, tmp_path, tmp_path / f"{name}.log")
        for name in ("spark", "scheduler")
    ]
    home.write(servers, {"spark": 15002})
    try:
        assert command.main(status) == 0
        assert "has died" not in capsys.readouterr().out
        processes.stop(servers[:1])
        assert command.main(status) == 1
        assert "spark has died: see" in capsys.readouterr().out
    finally:
        processes.stop(servers)


def test_crash_at_start_shows_the_log_and_leaves_nothing(tmp_path, monkeypatch):
    crash = ["sh", "-c", "echo the reason; exit 3"]
    monkeypatch.setattr(spark, "command", lambda *_: crash)
    stack = Stack(tmp_path / "home", airflow=False)
    with pytest.raises(Problem, match=r"^spark stopped while starting; the end of .*spark\.log:\nthe reason$"):
        stack.start()
    assert (stack.servers, stack.home.read()) == ([], ([], {}))


def test_every_lock_entry_has_hashes():
    for path in (INFRA / "requirements.lock", INFRA / "uv.lock.txt", INFRA / "docs.lock"):
        text = path.read_text()
        pinned = [line for line in text.splitlines() if "==" in line and not line.lstrip().startswith("#")]
        assert pinned
        assert all(line.endswith("\\") for line in pinned)


def test_tools_have_one_configuration():
    assert {"ruff", "mypy", "importlinter", "pytest"} <= set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    )
