"""Spark's driver with the settings of infra/k8s: the pods that it asks for, and a job on them. `make k8s`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from bootstrap import INFRA, ROOT
from stack import ports

from .pods import Pods, serving

BASE = INFRA / "k8s/base"
BIN = ROOT / ".venv/bin"
LAKE = {"AWS_ACCESS_KEY_ID": "the-key", "AWS_SECRET_ACCESS_KEY": "the-secret"}
JAR = ROOT / ".jars/clickjoin-logstore.jar"
SECRET = "known-to-all-parts"
JOB = """
import os
from pyspark.sql import SparkSession
context = SparkSession.builder.getOrCreate().sparkContext
seen = context.parallelize(range(1000), 4).map(lambda x: (x, os.environ["AWS_SECRET_ACCESS_KEY"])).collect()
print("SUM", sum(x for x, _ in seen), {key for _, key in seen})
context.stop()
"""


def settings(folder: Path) -> None:
    """What is mounted in the cluster, with this machine's address, free ports and paths."""
    (folder / "spark").mkdir()
    (folder / "cluster").mkdir()
    (folder / "cluster/CLICKJOIN_SPARK_SECRET").write_text(SECRET)
    here = {"/etc/clickjoin": str(folder), "spark-driver": "127.0.0.1"} | {
        port: str(ports.choose("auto", port)) for port in ("7078", "7079")
    }
    for name in ("spark-defaults.conf", "executor.yaml"):
        text = (BASE / name).read_text()
        for old, new in here.items():
            text = text.replace(old, new)
        (folder / "spark" / name).write_text(text)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Pods, str]:
    folder = tmp_path_factory.mktemp("driver")
    settings(folder)
    (folder / "job.py").write_text(JOB)
    pods = Pods(folder, {"lake": LAKE})
    env = os.environ | {
        "SPARK_CONF_DIR": str(folder / "spark"), "PYSPARK_PYTHON": str(BIN / "python"),
        "PATH": f"{BIN}:{os.environ['PATH']}",
    }  # fmt: skip
    with serving(pods) as master, (folder / "driver.log").open("w") as log:
        line = [BIN / "spark-submit", "--master", master, "--name", "clickjoin"]
        line += ["--conf", f"spark.local.dir={folder}/scratch", "--jars", JAR, folder / "job.py"]
        ended = subprocess.run(line, env=env, stdout=log, stderr=log, timeout=180)
    text = (folder / "driver.log").read_text()
    assert ended.returncode == 0, text[-3000:]
    return pods, text


def test_a_job_runs_on_executors_that_have_the_secret_and_the_keys(done: tuple[Pods, str]) -> None:
    assert "SUM 499500 {'the-secret'}" in done[1]


def test_executors_write_into_their_local_folder_alone(done: tuple[Pods, str]) -> None:
    """Their image's own working folder is on a root that is read-only: Spark copies JARs into the working folder."""
    assert not (done[0].folder / JAR.name).exists()
    assert (done[0].folder / "scratch" / JAR.name).exists()


def test_pods_are_as_the_schemas_and_the_strictest_standard_want_them(done: tuple[Pods, str]) -> None:
    assert len(done[0].made) >= 2
    for pod in done[0].made:
        kubernetes_validate.validate(pod, kubernetes_validate.latest_version(), strict=True)
        assert not [text for text in (SECRET, *LAKE.values()) if text in str(pod)]
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["automountServiceAccountToken"] is False
        (container,) = spec["containers"]
        assert container["image"] == "clickjoin-executor"
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["resources"]["limits"]["memory"] == "1536Mi"
        assert container["resources"]["requests"]["cpu"] == "500m"
        assert {volume["name"] for volume in spec["volumes"]} >= {mount["name"] for mount in container["volumeMounts"]}
        assert pod["metadata"]["ownerReferences"][0]["name"] == "spark-0"
        assert pod["metadata"]["labels"]["app.kubernetes.io/component"] == "executor"


def test_the_role_allows_what_the_driver_asks_for(done: tuple[Pods, str]) -> None:
    role = next(one for one in yaml.safe_load_all((BASE / "spark.yaml").read_text()) if one["kind"] == "Role")
    allowed = {(verb, name) for rule in role["rules"] for name in rule["resources"] for verb in rule["verbs"]}
    assert {(verb, resource) for verb, _, resource in done[0].asked} <= allowed
    assert {space for _, space, _ in done[0].asked} == {"clickjoin"}
