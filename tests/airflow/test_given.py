"""What spark-submit is given: settings that no other user sees, and nothing of the worker's own secrets."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from airflow.sdk._shared.secrets_masker import redact

from clickjoin_airflow.given import environment, properties
from clickjoin_airflow.job import JobRun, runner
from tests.intruder import intruder

JOB = JobRun("join", "/pipelines/clicks.yaml", "main", 5.0, "dag/run/1")
ODD = {
    "spark.hadoop.fs.s3a.secret.key": "wild=card\\x #1!",
    "spark.a": " two\nlines\tand ü",
    "spark.b c:d": True,
    "spark.n": 3,
}
# What lies beside it: the process list (this shell's, and those of all above it), its settings, its environment.
LOOKS = """
file=; for part in "$@"; do [ "$before" = --properties-file ] && file=$part; before=$part; done
stat -c 'mode %a' "$file" "$(dirname "$file")" | tr '\\n' ' '; echo
tr '\\0' ' ' < /proc/$$/cmdline; echo
cat "$file"
echo "file $file"
env
echo '{"joined": 3}'
"""


def submit(folder: Path, **extra: object) -> dict[str, object]:
    path = folder / "spark-submit"
    path.write_text(f"#!/bin/sh\n{LOOKS}\n")
    path.chmod(0o755)
    return {"mode": "submit", "spark_submit": str(path), "jars": "a.jar", **extra}


def test_settings_are_in_a_private_file_that_goes(tmp_path: Path) -> None:
    said: list[str] = []
    extra = submit(tmp_path, conf={"spark.authenticate.secret": "hush-hush", "spark.x": 1})
    assert runner(extra).run(JOB, said.append) == {"joined": 3}
    assert "mode 600 mode 700" in said
    assert "spark.authenticate.secret=hush-hush" in said  # as the script reads it
    where = next(line.removeprefix("file ") for line in said if line.startswith("file "))
    assert not Path(where).parent.exists()
    # The log's own line and the process list: the names alone, and no secret in any log.
    assert said[0].endswith("spark.authenticate, spark.authenticate.secret, spark.driver.bindAddress, "
                            "spark.driver.host, spark.log.level, spark.ui.enabled, spark.x")  # fmt: skip
    shown = next(line for line in said if line.startswith("/bin/sh "))
    assert "hush-hush" not in said[0] + shown
    assert "spark.x" not in shown
    assert redact("it is hush-hush") == "it is ***"


def test_the_file_goes_when_the_job_fails(tmp_path: Path) -> None:
    extra, said = submit(tmp_path), list[str]()
    Path(str(extra["spark_submit"])).write_text('#!/bin/sh\nfor part in "$@"; do echo "$part"; done; exit 3\n')
    with pytest.raises(RuntimeError, match="exit code 3"):
        runner(extra).run(JOB, said.append)
    where = next(line for line in said[1:] if line.endswith("/spark.properties"))
    assert not Path(where).parent.exists()


@pytest.mark.spark
def test_spark_reads_the_settings_as_they_are() -> None:
    with properties(ODD) as file, intruder() as other:
        given = other.jvm.org.apache.spark.util.Utils.getPropertiesFromFile(str(file))
        read = {name: given.apply(name) for name in ODD}
    assert read == {name: "true" if value is True else str(value).strip() for name, value in ODD.items()}


def test_the_environment_holds_no_secret_of_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = [
        "AIRFLOW_CONN_X", "AIRFLOW__CORE__FERNET_KEY", "_AIRFLOW_TOKEN", "POSTGRES_PASSWORD", "GITHUB_TOKEN",
        "SPARK_CONNECT_AUTHENTICATE_TOKEN", "CLICKJOIN_AIRFLOW_PASSWORD", "CLICKJOIN_SPARK_CONNECT", "SOME_API_KEY",
    ]  # fmt: skip
    for name in hidden:
        monkeypatch.setenv(name, "hidden-value")
    for name in ("AWS_PROFILE", "CLICKJOIN_PIPELINES", "SPARK_CONF_DIR", "SHOP_URL"):
        monkeypatch.setenv(name, "seen")
    said: list[str] = []
    runner(submit(tmp_path, env=["SHOP_URL"])).run(JOB, said.append)
    assert not any("hidden-value" in line for line in said)
    assert {"AWS_PROFILE=seen", "CLICKJOIN_PIPELINES=seen", "SPARK_CONF_DIR=seen", "SHOP_URL=seen"} <= set(said)
    assert f"PYSPARK_PYTHON={os.environ.get('PYSPARK_PYTHON', sys.executable)}" in said


@pytest.mark.parametrize(("master", "alone"), [
    ("local", True), ("local[*]", True), ("local[2,3]", True), ("local-cluster[1,1,1024]", False), ("yarn", False),
    ("spark://h:7077", False),
])  # fmt: skip
def test_a_spark_of_one_process_is_on_loopback_and_asks_for_its_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, master: str, alone: bool
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    said: list[str] = []
    runner(submit(tmp_path, master=master)).run(JOB, said.append)
    wanted = {"spark.authenticate=true", "spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1"}
    assert wanted & set(said) == (wanted if alone else set())
    assert ("SPARK_LOCAL_IP=127.0.0.1" in said) is alone
    assert environment(alone=True)["SPARK_LOCAL_IP"] == "127.0.0.1"


def test_the_connections_own_settings_go_first(tmp_path: Path) -> None:
    said: list[str] = []
    runner(submit(tmp_path, conf={"spark.driver.host": "10.0.0.7"})).run(JOB, said.append)
    assert "spark.driver.host=10.0.0.7" in said
    assert json.loads('{"joined": 3}') not in said
