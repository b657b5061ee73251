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

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
LONG = sorted(set(SERVICES) - {"migrate"})  # that one ends


@pytest.mark.parametrize("name", SERVICES)
def test_no_container_may_do_more_than_its_work(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert service["pids_limit"] <= 4096
    assert re.search(r"\d+g\}?$", service["mem_limit"])
    # PostgreSQL's image begins as root, to own its folder.
    assert name == "postgres" or not service.get("cap_add")
    assert not service.get("privileged")


def test_no_container_shares_anothers_network_or_is_seen_from_outside() -> None:
    assert [name for name in SERVICES if "network_mode" in SERVICES[name]] == []
    published = {name: SERVICES[name]["ports"] for name in SERVICES if "ports" in SERVICES[name]}
    assert published == {"api-server": ["127.0.0.1:8080:8080"]}


def test_spark_sees_the_scheduler_alone() -> None:
    on = {network: {name for name in SERVICES if network in SERVICES[name]["networks"]} for network in ("connect",)}
    assert on == {"connect": {"spark", "scheduler"}}
    assert SERVICES["spark"]["networks"] == ["connect"]


@pytest.mark.parametrize("name", LONG)
def test_every_service_that_stays_has_a_health_check(name: str) -> None:
    check = SERVICES[name]["healthcheck"]
    assert check["test"][0] in ("CMD", "CMD-SHELL")
    assert check["interval"]
    scripts = [word for word in check["test"] if word.endswith(".py")]
    assert all((ROOT / script).is_file() for script in scripts)


def test_each_gets_the_secrets_that_it_needs() -> None:
    given = {name: {Path(file).stem for file in SERVICES[name]["env_file"] if ".run" in file} for name in SERVICES}
    parts = {name: {"airflow"} for name in ("migrate", "api-server", "dag-processor")}
    assert given == {"postgres": {"postgres"}, "spark": {"spark"}, "scheduler": {"airflow", "client"}} | parts
    assert SERVICES["scheduler"]["environment"]["CLICKJOIN_POOL"] in " ".join(SERVICES["migrate"]["command"])
    assert all(SERVICES[name]["environment"]["CLICKJOIN_POOL"] for name in ("dag-processor", "scheduler"))


def test_images_can_be_pinned() -> None:
    assert SERVICES["postgres"]["image"] == "${CLICKJOIN_POSTGRES:-postgres:17-alpine}"
    lines = (INFRA / "images/spark.Dockerfile").read_text().splitlines()
    assert "ARG PYTHON_IMAGE=python:3.11-slim-bookworm" in lines
    assert "FROM ${PYTHON_IMAGE}" in lines


def test_the_shipped_pipeline_is_the_laptops_below_data() -> None:
    mounts = [mount for mount in SERVICES["scheduler"]["volumes"] if mount.endswith(":/pipelines:ro")]
    assert mounts == ["${CLICKJOIN_PIPELINES:-./infra/compose/pipelines}:/pipelines:ro"]
    here, there = (ROOT / folder / "zozo.yaml" for folder in ("dags/pipelines", "infra/compose/pipelines"))
    ours, theirs = (yaml.safe_load(path.read_text()) for path in (here, there))
    paths = [theirs.pop("lake"), *(theirs[stream]["source"].pop("path") for stream in ("primary", "foreign"))]
    assert paths == ["/data/zozo/lake", "/data/zozo/logs/impressions/*.jsonl", "/data/zozo/logs/clicks/*.jsonl"]
    del ours["lake"], ours["primary"]["source"]["path"], ours["foreign"]["source"]["path"]
    assert theirs == ours
    assert load(there).root == "/data/zozo/lake/zozo"
    writers = [name for name in SERVICES if "data:/data" in SERVICES[name].get("volumes", [])]
    assert sorted(writers) == ["scheduler", "spark"]


def test_spark_is_behind_tls_alone() -> None:
    lines = [line.strip() for line in (INFRA / "images/haproxy.cfg").read_text().splitlines()]
    assert [line for line in lines if line.startswith("bind")] == [
        "bind :15443 ssl crt /run/clickjoin/connect.pem alpn h2 ssl-min-ver TLSv1.2"
    ]
    assert "server spark 127.0.0.1:15002" in lines
    # The address that clients get is TLS's, and it is tokens' own rule: none without TLS, but to localhost.
    assert "sc://spark:15443/;use_ssl=true;token=" in (INFRA / "images/entrypoint.sh").read_text()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("secrets") / "compose"
    assert make_secrets.main(folder) == 0
    return folder


def test_secrets_are_made_once_and_private(made: Path) -> None:
    files = {file.name: file.read_text() for file in made.iterdir()}
    assert set(files) == {"postgres.env", "spark.env", "client.env", "airflow.env"}
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
    assert spark["SPARK_CONNECT_AUTHENTICATE_TOKEN"] == client["CLICKJOIN_CONNECT_TOKEN"]
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
