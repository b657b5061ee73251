"""docker-compose.yml: what each container may do, where Spark is reached, and who gets which secret."""

from __future__ import annotations

import base64
import re
import socket
import ssl
import stat
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from bootstrap import INFRA, ROOT
from clickjoin.config import load
from images import make_secrets

PARTS = INFRA / "compose/parts.yml"
FILES = {"full": ROOT / "docker-compose.yml", "small": ROOT / "docker-compose.small.yml"}


def services(file: Path) -> dict[str, dict[str, Any]]:
    """The services of a file, each with what it extends: lists are added, maps are merged, all else is replaced."""
    parts = yaml.safe_load(PARTS.read_text())["services"]
    found = yaml.safe_load(file.read_text())["services"]
    return {
        name: merged(parts[one["extends"]["service"]], one) if "extends" in one else one for name, one in found.items()
    }


def merged(base: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    done = dict(base)
    for key, value in more.items():
        if isinstance(value, list) and key != "command":
            done[key] = [*base.get(key, []), *value]
        else:
            done[key] = base.get(key, {}) | value if isinstance(value, dict) else value
    return done


ALL = {kind: services(file) for kind, file in FILES.items()}
SERVICES = ALL["full"]
EACH = [(kind, name) for kind in ALL for name in ALL[kind]]
ENDING = ("migrate", "demo")


@pytest.mark.parametrize(("kind", "name"), EACH)
def test_no_container_may_do_more_than_its_work(kind: str, name: str) -> None:
    service = ALL[kind][name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert service["pids_limit"] <= 4096
    assert re.search(r"\d+[gm]\}?$", service["mem_limit"])
    # PostgreSQL's image begins as root, to own its folder.
    assert name == "postgres" or not service.get("cap_add")
    assert not service.get("privileged")
    assert "network_mode" not in service


def test_a_machine_of_16_gb_has_room_for_all_that_stays() -> None:
    units = {"m": 1, "g": 1024}
    limits = {
        name: re.search(r"(\d+)([gm])\}?$", one["mem_limit"]) for name, one in SERVICES.items() if name not in ENDING
    }
    each = {name: int(found[1]) * units[found[2]] for name, found in limits.items() if found}
    together = sum(size * SERVICES[name].get("deploy", {}).get("replicas", 1) for name, size in each.items())
    assert together <= 12.7 * 1024


def test_nothing_is_seen_from_other_machines() -> None:
    published = {
        kind: {name: ALL[kind][name]["ports"] for name in ALL[kind] if "ports" in ALL[kind][name]} for kind in ALL
    }
    server = ["127.0.0.1:${CLICKJOIN_AIRFLOW_PORT:-8080}:8080"]
    store = ["127.0.0.1:${CLICKJOIN_S3_PORT:-7070}:7070"]
    assert published == {"full": {"s3": store, "api-server": server}, "small": {"api-server": server}}


def test_spark_is_seen_by_what_runs_tasks_alone() -> None:
    on = {kind: {name for name in ALL[kind] if "connect" in ALL[kind][name]["networks"]} for kind in ALL}
    assert on == {"full": {"spark", "worker"}, "small": {"spark", "scheduler"}}
    assert {name for name in SERVICES if "cluster" in SERVICES[name]["networks"]} == {
        "spark", "spark-master", "spark-worker"
    }  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, name in EACH if name not in ENDING])
def test_every_service_that_stays_has_a_health_check(kind: str, name: str) -> None:
    check = ALL[kind][name]["healthcheck"]
    assert check["test"][0] in ("CMD", "CMD-SHELL")
    assert check["interval"]
    scripts = [word for word in check["test"] if word.endswith(".py")]
    assert all((ROOT / script).is_file() for script in scripts)


def test_each_gets_the_secrets_that_it_needs() -> None:
    given = {
        kind: {
            name: {Path(file).stem for file in one.get("env_file", []) if ".run" in file} for name, one in all_.items()
        }
        for kind, all_ in ALL.items()
    }
    shared = {"postgres": {"postgres"}, "migrate": {"airflow"}, "dag-processor": {"airflow"}, "triggerer": {"airflow"}}
    assert given["small"] == shared | {
        "spark": {"spark"}, "api-server": {"airflow"}, "scheduler": {"airflow", "client"}, "demo": {"airflow"}
    }  # fmt: skip
    assert given["full"] == shared | {
        "redis": {"redis"}, "s3": {"s3"}, "spark-master": {"cluster"}, "spark-worker": {"cluster", "lake"},
        "spark": {"spark", "cluster", "lake"}, "api-server": {"airflow", "lake"}, "scheduler": {"airflow", "celery"},
        "worker": {"airflow", "client", "celery", "lake"}, "demo": {"airflow", "lake"},
    }  # fmt: skip
    assert SERVICES["worker"]["environment"]["CLICKJOIN_POOL"] in " ".join(SERVICES["migrate"]["command"])


def test_images_can_be_pinned() -> None:
    assert SERVICES["postgres"]["image"] == "${CLICKJOIN_POSTGRES:-postgres:17-alpine}"
    assert SERVICES["redis"]["image"] == "${CLICKJOIN_REDIS:-redis:7-alpine}"
    for name in ("clickjoin", "executor", "s3"):
        lines = (INFRA / f"images/{name}.Dockerfile").read_text().splitlines()
        assert "ARG PYTHON_IMAGE=python:3.11-slim-bookworm" in lines
        assert "FROM ${PYTHON_IMAGE}" in lines


def test_executors_are_given_nothing_of_clickjoin() -> None:
    copied = re.findall(r"^COPY .*", (INFRA / "images/executor.Dockerfile").read_text(), re.MULTILINE)
    assert not [line for line in copied if "spark_apps" in line or "plugins" in line]


@pytest.mark.parametrize(("kind", "logs", "lake"), [
    ("full", "s3://logs/zozo", "s3://lake"), ("small", "/data/zozo/logs", "/data/zozo/lake"),
])  # fmt: skip
def test_the_shipped_pipeline_reads_what_the_demo_writes(kind: str, logs: str, lake: str) -> None:
    file = INFRA / "compose" / kind / "zozo.yaml"
    pipeline = load(file)
    assert pipeline.root == f"{lake}/zozo"
    paths = [item.source.path for item in pipeline.inputs]
    assert sorted(paths) == [f"{logs}/clicks/*.jsonl", f"{logs}/impressions/*.jsonl.gz"]
    assert ALL[kind]["demo"]["command"][-1] == logs


def test_spark_is_behind_tls_alone() -> None:
    lines = [line.strip() for line in (INFRA / "images/haproxy.cfg").read_text().splitlines()]
    assert [line for line in lines if line.startswith("bind")] == [
        "bind :15443 ssl crt /run/clickjoin/connect.pem alpn h2 ssl-min-ver TLSv1.2"
    ]
    assert "server spark 127.0.0.1:15002" in lines


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("secrets") / "compose"
    assert make_secrets.main(folder) == 0
    return folder


def test_secrets_are_made_once_and_private(made: Path) -> None:
    files = {file.name: file.read_text() for file in made.iterdir()}
    assert set(files) == {
        "postgres.env", "spark.env", "client.env", "airflow.env", "cluster.env", "s3.env", "lake.env",
        "redis.env", "celery.env", "kustomization.yaml",
    }  # fmt: skip
    assert {stat.S_IMODE(file.stat().st_mode) for file in made.iterdir()} == {0o600}
    assert make_secrets.main(made) == 0
    assert files == {file.name: file.read_text() for file in made.iterdir()}
    # A new certificate, and the database's password stays.
    (made / "client.env").unlink()
    assert make_secrets.main(made) == 0
    changed = {file.name for file in made.iterdir() if file.read_text() != files[file.name]}
    assert changed == {"spark.env", "client.env"}


def variables(file: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


def test_the_key_is_sparks_and_fits_what_clients_trust(made: Path, tmp_path: Path) -> None:
    spark, client = variables(made / "spark.env"), variables(made / "client.env")
    token = spark["SPARK_CONNECT_AUTHENTICATE_TOKEN"]
    assert client["AIRFLOW_CONN_CLICKJOIN_SPARK"] == f"clickjoin://:{token}@spark:15443/?use_ssl=true"
    assert client["CLICKJOIN_SPARK_CONNECT"] == f"sc://spark:15443/;use_ssl=true;token={token}"
    pem, public = (
        base64.b64decode(text).decode() for text in (spark["CLICKJOIN_TLS_PEM"], client["CLICKJOIN_TLS_CERTIFICATE"])
    )
    assert "PRIVATE KEY" in pem
    assert "PRIVATE KEY" not in public
    (tmp_path / "connect.pem").write_text(pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "connect.pem")
    shaken = handshake(server, ssl.create_default_context(cadata=public), "spark")
    assert shaken == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, ssl.create_default_context(cadata=public), "another")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, ssl.create_default_context(), "spark")


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> str | None:
    here, there = socket.socketpair()

    def answer() -> None:
        try:
            server.wrap_socket(there, server_side=True).close()
        except (ssl.SSLError, OSError):
            there.close()

    thread = Thread(target=answer)
    thread.start()
    try:
        with client.wrap_socket(here, server_hostname=host) as secure:
            return secure.version()
    finally:
        here.close()
        thread.join(10)
