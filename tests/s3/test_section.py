"""Where S3 is, by a pipeline's file, and who asks, by a profile: the environment has neither in variables."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from stack.gateway import Gateway
from tests.oracle import examine
from tests.s3.sections import read_pages, work_on
from tests.sampled import in_full

ROOT = Path(__file__).parents[2]
BUCKET = "sections"


@pytest.fixture(scope="module")
def stores(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, Gateway]]:
    """Two servers that know the same credentials, with a bucket of one name."""
    other = Gateway(tmp_path_factory.mktemp("other"))
    other.know(gateway)
    other.start()
    for server in (gateway, other):
        server.bucket(BUCKET)
    yield gateway, other
    other.kill()


@pytest.fixture
def profile(stores: tuple[Gateway, Gateway], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment in which only a profile has credentials, and an endpoint that nobody listens at."""
    known = stores[0].environment()
    for name in known:
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "credentials"
    keys = (f"{name.lower()} = {known[name]}" for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    file.write_text("\n".join(["[default]", "aws_access_key_id = nobody", "[lakes]", *keys]))
    given = {"AWS_SHARED_CREDENTIALS_FILE": str(file), "AWS_PROFILE": "lakes", "AWS_EC2_METADATA_DISABLED": "true"}
    given |= {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_REGION": "eu-west-3"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    return given


def written(folder: Path, server: Gateway, name: str = "p") -> Path:
    """A pipeline's file that names a server."""
    section = {"endpoint": f"http://127.0.0.1:{server.port}", "region": "us-east-1", "path_style": True}
    stream = {"event_id": "event_id", "event_time": "embedded"}
    foreign = {"primary_id": "query_id", "primary_time": "embedded"}
    logs = folder / "logs"
    said = {
        "pipeline": name, "engine": "arrow", "lake": f"s3://{BUCKET}/lake", "s3": section,
        "primary": {"source": {"kind": "files", "path": str(logs / "queries/*")}, **stream},
        "foreign": {"source": {"kind": "files", "path": str(logs / "clicks/*")}, **stream, **foreign},
    }  # fmt: skip
    file = folder / f"{name}-{server.port}.yaml"
    file.write_text(yaml.safe_dump(said))
    return file


def test_pipelines_of_two_stores_in_one_process(
    stores: tuple[Gateway, Gateway], profile: dict[str, str], tmp_path: Path
) -> None:
    files = [written(tmp_path, server, name) for server, name in zip(stores, ("one", "two"), strict=True)]
    _apart(work_on, files)
    for name, server, other in zip(("one", "two"), stores, reversed(stores), strict=True):
        assert (server.folder / "data" / BUCKET / f"lake/{name}/forgotten/_delta_log").is_dir()
        assert not (other.folder / "data" / BUCKET / f"lake/{name}").exists()


def _apart(work: Callable[[list[Path]], None], files: list[Path]) -> None:
    """Do it in a process of its own: Arrow reads profiles once in the life of a process, and other tests have none."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=(files,))
    process.start()
    process.join(300)
    assert process.exitcode == 0


def test_the_page_reads_each_pipeline_in_its_own_store(
    stores: tuple[Gateway, Gateway], profile: dict[str, str], tmp_path: Path
) -> None:
    files = []
    for server, shards in zip(stores, (3, 5), strict=True):
        path = written(tmp_path, server, f"page{shards}")
        path.write_text(f"{path.read_text()}registry: {{shards: {shards}}}\n")
        files.append(path)
    _apart(read_pages, files)


@in_full
def test_spark_and_all_else_by_a_section_and_a_profile(
    stores: tuple[Gateway, Gateway], profile: dict[str, str], tmp_path: Path
) -> None:
    """Spark lands and claims (driver_bytes: 0): S3A, Arrow in its tasks, delta-rs and boto3 all reach the server."""
    env = os.environ | {"PYTHONPATH": str(ROOT / "spark_apps")}
    command = [sys.executable, "-m", "clickjoin.cli"]
    _run([*command, "generate", str(tmp_path / "logs"), "--clicks", "300", "--queries", "100", "--files", "1"], env)
    file = written(tmp_path, stores[1], "drained")
    said = yaml.safe_load(file.read_text()) | {"batch": {"driver_bytes": 0}}
    file.write_text(yaml.safe_dump(said))
    _run([*command, "drain", "--config", str(file)], env)
    found = examine(
        str(tmp_path / "logs/clicks/*"), str(tmp_path / "logs/queries/*"),
        stores[1].folder / "data" / BUCKET / "lake/drained",
    )  # fmt: skip
    assert found.ok, found.text()
    assert found.joined > 200


def _run(command: list[str], env: dict[str, str]) -> None:
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
