"""infra/k8s as kustomize makes it: where kustomize has been built (`make k8s` does, by Go)."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from bootstrap import INFRA, Problem
from images import make_secrets
from stack import built

KUSTOMIZE = ("kustomize", "sigs.k8s.io/kustomize/kustomize/v5", "v5.7.1")
Document = dict[str, Any]
OWN = """
resources: [../k8s]
namespace: clickjoin
images: [{name: clickjoin, newName: images.example.com/clickjoin, newTag: "7"}]
configMapGenerator:
  - {name: pipelines, behavior: replace, files: [clicks.yaml]}
  - {name: spark-settings, behavior: merge, files: [spark-defaults.conf]}
"""


@pytest.fixture(scope="module")
def program() -> Path:
    name, package, version = KUSTOMIZE
    if os.environ.get("CLICKJOIN_K8S") != "all":
        found = built.cached(name, version)
        return found or pytest.skip(f"kustomize {version} is not built: make k8s")
    try:
        return built.program(name, package, version)
    except Problem as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("k8s")
    for folder in ("k8s", "airflow", "compose"):
        shutil.copytree(INFRA / folder, root / "infra" / folder)
    assert make_secrets.main(root / ".run/compose") == 0
    return root


def build(program: Path, folder: Path) -> dict[tuple[str, str], Document]:
    done = subprocess.run([program, "build", folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = list(yaml.safe_load_all(done.stdout))
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def named(value: Any, key: str) -> set[str]:
    """The names that are given anywhere below by this key."""
    if isinstance(value, list):
        return {name for item in value for name in named(item, key)}
    if not isinstance(value, dict):
        return set()
    here = {value[key]["name"]} if key in value else set()
    return here | {name for item in value.values() for name in named(item, key)}


def test_all_of_it(program: Path, tree: Path) -> None:
    found = build(program, tree / "infra/k8s")
    for (kind, name), one in found.items():
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
        assert (kind == "Namespace") or one["metadata"]["namespace"] == "clickjoin", name
    of = {kind: {name for one, name in found if one == kind} for kind, _ in found}
    everything = list(found.values())
    assert named(everything, "configMapRef") | named(everything, "configMap") == of["ConfigMap"]
    assert named(everything, "secretRef") | {"cluster"} == of["Secret"]
    lake = dict(line.split("=", 1) for line in (tree / ".run/compose/lake.env").read_text().splitlines())
    data = found["Secret", "lake"]["data"]
    assert {key: base64.b64decode(value).decode() for key, value in data.items()} == lake


def test_with_ones_own_stores(program: Path, tree: Path) -> None:
    found = build(program, tree / "infra/k8s/base")
    assert {name for kind, name in found if kind == "StatefulSet"} == {"spark", "worker"}
    assert not [name for kind, name in found if kind == "Service" and name in ("postgres", "redis", "s3")]


def test_with_ones_own_pipelines_and_images(program: Path, tree: Path) -> None:
    own = tree / "infra/own"
    own.mkdir()
    (own / "kustomization.yaml").write_text(OWN)
    (own / "clicks.yaml").write_text("pipeline: clicks\n")
    shutil.copy(tree / "infra/k8s/base/spark-defaults.conf", own)
    found = build(program, own)
    maps = {name.rpartition("-")[0]: one["data"] for (kind, name), one in found.items() if kind == "ConfigMap"}
    assert set(maps["pipelines"]) == {"clicks.yaml"}
    assert set(maps["spark-settings"]) == {"executor.yaml", "spark-defaults.conf"}
    (container,) = found["Deployment", "scheduler"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "images.example.com/clickjoin:7"
