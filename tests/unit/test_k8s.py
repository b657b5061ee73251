"""infra/k8s: manifests that Kubernetes' schemas allow, name nothing which is not there, and confine as compose does."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from bootstrap import INFRA, ROOT
from clickjoin.config import load
from images import make_secrets
from tests.unit.test_infra_compose import SERVICES

K8S = INFRA / "k8s"
FOLDERS = (K8S / "base", K8S / "stores")
Document = dict[str, Any]
SECRETS = {Path(name).stem for names in make_secrets.TOGETHER for name in names}
MAPS = {"airflow-settings", "airflow-containers", "pipelines", "spark-settings"}
EXECUTOR = yaml.safe_load((K8S / "base/executor.yaml").read_text())
SPARK = dict(
    line.split(None, 1)
    for line in (K8S / "base/spark-defaults.conf").read_text().splitlines()
    if line and not line.startswith("#")
)


def kustomization(folder: Path) -> Document:
    found: Document = yaml.safe_load((folder / "kustomization.yaml").read_text())
    return found


def documents() -> list[Document]:
    files = [folder / name for folder in FOLDERS for name in kustomization(folder)["resources"] if ".." not in name]
    return [one for file in files for one in yaml.safe_load_all(file.read_text())]


ALL = documents()
PODS = {
    one["metadata"]["name"]: one["spec"]["template"]["spec"]
    for one in ALL
    if one["kind"] in ("Deployment", "StatefulSet", "Job")
} | {"executor": EXECUTOR["spec"]}
CONTAINERS = [(pod, one) for pod in PODS for one in PODS[pod].get("initContainers", []) + PODS[pod]["containers"]]
IDS = [f"{pod}-{one['name']}" for pod, one in CONTAINERS]


def named(kind: str) -> set[str]:
    return {one["metadata"]["name"] for one in ALL if one["kind"] == kind}


@pytest.mark.parametrize("document", ALL, ids=[f"{one['kind']}-{one['metadata']['name']}" for one in ALL])
def test_the_schemas_of_kubernetes_allow_it(document: Document) -> None:
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def test_every_file_is_used() -> None:
    for folder in FOLDERS:
        content = kustomization(folder)
        made = [name for one in content.get("configMapGenerator", []) for name in one.get("files", one.get("envs"))]
        here = {name for name in [*content["resources"], *made] if ".." not in name}
        assert here | {"kustomization.yaml"} == {file.name for file in folder.iterdir()}
        for name in content["resources"]:
            assert (folder / name).resolve() == ROOT / ".run/compose" or (folder / name).exists()
    assert kustomization(K8S)["resources"] == ["base", "stores"]


@pytest.mark.parametrize(("pod", "container"), CONTAINERS, ids=IDS)
def test_no_container_may_do_more_than_its_work(pod: str, container: Document) -> None:
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}
    }  # fmt: skip
    of_pod = PODS[pod]["securityContext"]
    assert of_pod["runAsNonRoot"] is True
    assert of_pod["runAsUser"] > 0
    assert of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
    # Spark's driver alone speaks with Kubernetes. Variables of services, as REDIS_PORT, would be taken for settings.
    assert PODS[pod].get("automountServiceAccountToken") is (None if pod == "spark" else False)
    assert PODS[pod]["enableServiceLinks"] is False
    if pod != "executor":  # Spark itself limits them, by spark.executor.memory and its overhead
        assert re.fullmatch(r"\d+[MG]i", container["resources"]["limits"]["memory"])
        assert container["resources"]["requests"]["cpu"]


@pytest.mark.parametrize(("pod", "container"), CONTAINERS, ids=IDS)
def test_all_that_a_container_names_is_there(pod: str, container: Document) -> None:
    of = {item["name"]: item for item in PODS[pod].get("volumes", [])}
    owner = next((one for one in ALL if one["kind"] == "StatefulSet" and one["metadata"]["name"] == pod), {})
    claims = {item["metadata"]["name"] for item in owner.get("spec", {}).get("volumeClaimTemplates", [])}
    assert {mount["name"] for mount in container["volumeMounts"]} <= set(of) | claims
    maps = {item["configMapRef"]["name"] for item in container.get("envFrom", []) if "configMapRef" in item}
    assert maps | {item["configMap"]["name"] for item in of.values() if "configMap" in item} <= MAPS
    secrets = {item["secretRef"]["name"] for item in container.get("envFrom", []) if "secretRef" in item}
    assert secrets | {item["secret"]["secretName"] for item in of.values() if "secret" in item} <= SECRETS
    assert all("value" in item for item in container.get("env", []))
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        probe = container.get(name, {})
        if "httpGet" in probe:
            assert probe["httpGet"]["port"] in {port["name"] for port in container["ports"]}
        for word in probe.get("exec", {}).get("command", []):
            assert not word.endswith(".py") or (ROOT / word).is_file()


def test_each_gets_the_secrets_that_it_gets_of_compose() -> None:
    def given(pod: Document) -> set[str]:
        refs = [item for container in pod["containers"] for item in container.get("envFrom", [])]
        files = {item["secret"]["secretName"] for item in pod["volumes"] if "secret" in item}
        return {item["secretRef"]["name"] for item in refs if "secretRef" in item} | files

    for name, pod in PODS.items():
        service = SERVICES["spark-worker" if name == "executor" else name]
        wanted = {Path(file).stem for file in service.get("env_file", []) if ".run" in file}
        of_spark = {value.split(":")[0] for key, value in SPARK.items() if ".executor.secretKeyRef." in key}
        mounted = {key.rpartition(".")[2] for key in SPARK if key.startswith("spark.kubernetes.executor.secrets.")}
        assert given(pod) | (of_spark | mounted if name == "executor" else set()) == wanted, name


def test_images_and_arguments_are_those_of_compose() -> None:
    for name, pod in PODS.items():
        if name == "executor":
            assert SPARK["spark.kubernetes.container.image"] == SERVICES["spark-worker"]["image"]
            continue
        (container,) = pod["containers"]
        image = SERVICES[name]["image"]
        assert container["image"] == re.sub(r"^\$\{\w+:-(.*)\}$", r"\1", image)
        if name != "redis" and "command" in SERVICES[name]:
            left = [word for word in SERVICES[name]["command"] if word != "--skip-serve-logs"]
            assert [word for word in container["args"] if word != "--skip-serve-logs"] == left
    assert set(PODS) - {"executor"} | {"spark-master", "spark-worker"} == set(SERVICES)


def test_airflow_is_set_as_in_compose() -> None:
    lines = (K8S / "base/airflow-containers.env").read_text().splitlines()
    values = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    assert values == SERVICES["scheduler"]["environment"]


def test_services_lead_to_ports_of_pods() -> None:
    parts = {one["metadata"]["name"]: one for one in ALL if one["kind"] in ("Deployment", "StatefulSet")}
    for service in (one for one in ALL if one["kind"] == "Service"):
        part = parts[service["spec"]["selector"]["app.kubernetes.io/component"]]
        assert part["spec"]["template"]["metadata"]["labels"] == service["spec"]["selector"]
        (container,) = part["spec"]["template"]["spec"]["containers"]
        assert {port["port"] for port in service["spec"]["ports"]} <= {
            one["containerPort"] for one in container["ports"]
        }
    for part in parts.values():
        assert part["spec"]["selector"]["matchLabels"] == part["spec"]["template"]["metadata"]["labels"]
        assert part["spec"].get("serviceName") in {None, *named("Service")}
    hosts = {"spark", "postgres", "redis", "s3"}  # in what `make secrets` writes
    assert hosts <= named("Service")


def test_policies_name_parts_and_their_ports() -> None:
    ports = {
        name: {one["containerPort"] for c in pod["containers"] for one in c.get("ports", [])}
        for name, pod in PODS.items()
    }
    ports["executor"] = {int(SPARK["spark.blockManager.port"])}
    closed = {}
    for policy in (one for one in ALL if one["kind"] == "NetworkPolicy" and one["spec"]["podSelector"]):
        part = policy["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
        for rule in policy["spec"]["ingress"]:
            (expression,) = rule["from"][0]["podSelector"]["matchExpressions"]
            assert set(expression["values"]) <= set(PODS)
            closed.setdefault(part, set()).update(port["port"] for port in rule["ports"])
    assert closed == {name: of - {8974} for name, of in ports.items() if of - {8974}}


def test_sparks_settings_name_what_is_there() -> None:
    space = kustomization(K8S / "base")["namespace"]
    assert SPARK["spark.kubernetes.namespace"] == space == kustomization(K8S / "stores")["namespace"]
    assert named("Namespace") == {space}
    assert SPARK["spark.driver.host"] in named("Service")
    (driver,) = PODS["spark"]["containers"]
    assert {int(SPARK["spark.driver.port"]), int(SPARK["spark.driver.blockManager.port"])} <= {
        port["containerPort"] for port in driver["ports"]
    }
    mounts = {mount["name"]: mount["mountPath"] for mount in driver["volumeMounts"]}
    env = {item["name"]: item["value"] for item in driver["env"]}
    assert env["SPARK_CONF_DIR"] == mounts["settings"]
    assert SPARK["spark.kubernetes.executor.podTemplateFile"] == f"{mounts['settings']}/executor.yaml"
    assert SPARK["spark.kubernetes.executor.secrets.cluster"] == mounts["cluster"]
    key = f"{mounts['cluster']}/{next(iter(make_secrets.of_cluster()['cluster.env']))}"
    assert SPARK["spark.authenticate.secret.file"] == key
    assert {"name": "CLICKJOIN_SPARK_SECRET_FILE", "value": key} in EXECUTOR["spec"]["containers"][0]["env"]
    assert SPARK["spark.kubernetes.executor.podTemplateContainerName"] == EXECUTOR["spec"]["containers"][0]["name"]
    lake = make_secrets.of_store()["lake.env"]
    refs = {key.rpartition(".")[2]: value for key, value in SPARK.items() if ".secretKeyRef." in key}
    assert refs == {name: f"lake:{name}" for name in refs}
    assert set(refs) <= set(lake)


def test_no_secret_is_in_the_files() -> None:
    assert not named("Secret")
    assert "spark.authenticate.secret" not in SPARK
    keys = {key for make in make_secrets.TOGETHER.values() for values in make().values() for key in values}
    open_ = {"AWS_EC2_METADATA_DISABLED"}
    for _, container in CONTAINERS:
        assert not (keys - open_) & {item["name"] for item in container.get("env", [])}


def test_the_pipelines_are_those_of_compose() -> None:
    (made,) = kustomization(INFRA / "compose")["configMapGenerator"]
    files = {INFRA / "compose" / name for name in made["files"]}
    assert files == set((INFRA / "compose/full").iterdir())
    assert all(load(file) for file in files)


def test_secrets_are_named_for_kustomize(tmp_path: Path) -> None:
    assert make_secrets.main(tmp_path) == 0
    made = yaml.safe_load((tmp_path / "kustomization.yaml").read_text())
    assert {one["name"]: one["envs"] for one in made["secretGenerator"]} == {name: [f"{name}.env"] for name in SECRETS}
    assert made["generatorOptions"] == {"disableNameSuffixHash": True}
    assert {file.name for file in tmp_path.glob("*.env")} == {f"{name}.env" for name in SECRETS}


@pytest.mark.parametrize("java_home", [True, False])
def test_an_executor_is_started_by_sparks_contract(tmp_path: Path, java_home: bool) -> None:
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    java.write_text('#!/bin/bash\nprintf "%s\\0" "$@"\nprintf "%s" "secret=$_SPARK_AUTH_SECRET"\n')
    java.chmod(0o755)
    (tmp_path / "secret").write_text("known to both")
    options = {f"SPARK_JAVA_OPT_{i}": value for i, value in enumerate(["-Da=1 2", "-Db=x\ny", *["-Dc"] * 8, "-Dlast"])}
    env = options | ({"JAVA_HOME": str(tmp_path)} if java_home else {}) | {
        "PATH": os.environ["PATH"] if java_home else f"{tmp_path}/bin:{os.environ['PATH']}",
        "SPARK_HOME": "/spark", "SPARK_CONF_DIR": "/opt/spark/conf", "SPARK_CLASSPATH": "/more.jar",
        "SPARK_EXECUTOR_MEMORY": "700m", "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@spark-driver:7078",
        "SPARK_EXECUTOR_ID": "3", "SPARK_EXECUTOR_CORES": "1", "SPARK_APPLICATION_ID": "spark-1",
        "SPARK_EXECUTOR_POD_IP": "10.0.0.7", "SPARK_EXECUTOR_POD_NAME": "clickjoin-exec-3",
        "SPARK_RESOURCE_PROFILE_ID": "0", "CLICKJOIN_SPARK_SECRET_FILE": str(tmp_path / "secret"),
    }  # fmt: skip
    line = [INFRA / "images/spark-node.sh", "executor"]
    *words, secret = subprocess.run(line, env=env, capture_output=True, text=True, check=True).stdout.split("\0")
    assert words == [
        *options.values(), "-Xms700m", "-Xmx700m", "-cp", "/opt/spark/conf:/more.jar:/spark/jars/*",
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        "--driver-url", "spark://CoarseGrainedScheduler@spark-driver:7078", "--executor-id", "3", "--cores", "1",
        "--app-id", "spark-1", "--hostname", "10.0.0.7", "--resourceProfileId", "0", "--podName", "clickjoin-exec-3",
    ]  # fmt: skip
    assert secret == "secret=a25vd24gdG8gYm90aA=="
