"""Airflow's settings, as variables: those of a file, then the user's own, then what the stack itself decides."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bootstrap import INFRA

from . import broker, postgres
from .home import Home
from .setup import Setup

FILE = INFRA / "airflow/airflow.env"
POOL = "clickjoin_backfill"
DATABASE = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"
CONNECTION = "AIRFLOW_CONN_CLICKJOIN_SPARK"
# Seconds that a part waits for another's transaction. After SQLite's own five, a scheduler of 30 pipelines gave up.
_PATIENCE = 60
# What the user has set is heeded, unless it says where another installation keeps its things.
_PASSED = "AIRFLOW__"


def environment(
    env: Mapping[str, str], home: Home, port: int, dags: Path, plugins: Path, *,
    setup: Setup | None = None, ports: Mapping[str, int] | None = None,
) -> dict[str, str]:  # fmt: skip
    """Airflow's settings as variables, which is also what its command line needs."""
    setup, ports = setup or Setup(), ports or {}
    lines = [line for line in FILE.read_text().splitlines() if line and not line.startswith("#")]
    file = dict(line.split("=", 1) for line in lines)
    own = _paths(home, dags, plugins) | _server(home, port) | _storage(home, setup, ports)
    passed = {name: value for name, value in os.environ.items() if name.startswith(_PASSED)}
    connection = {CONNECTION: json.dumps(_connection(home, setup, ports)), "CLICKJOIN_POOL": POOL}
    return {**env, **file, **passed, **own, **connection}


def unheeded(env: Mapping[str, str]) -> list[str]:
    """Names of the user's own settings that the stack decides otherwise; `env`: what its parts are started with."""
    return sorted(name for name, value in os.environ.items() if name.startswith(_PASSED) and env.get(name) != value)


def sqlite(home: Home, patience: int = _PATIENCE) -> str:
    """The stack's own SQLite."""
    return f"sqlite:///{home.folder / 'airflow/airflow.db'}?timeout={patience}"


def database_url(home: Home, setup: Setup, ports: Mapping[str, int]) -> str:
    """Airflow's database, with the password."""
    if setup.database == "sqlite":
        return sqlite(home)
    return postgres.url(home, ports[postgres.NAME]) if setup.database == postgres.NAME else setup.database


def broker_url(home: Home, setup: Setup, ports: Mapping[str, int]) -> str:
    """Celery's broker, with the password."""
    return broker.url(home, ports[broker.NAME]) if setup.broker == broker.NAME else setup.broker


def _paths(home: Home, dags: Path, plugins: Path) -> dict[str, str]:
    return {
        "AIRFLOW_HOME": str(home.folder / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(plugins),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home.passwords),
    }


def _server(home: Home, port: int) -> dict[str, str]:
    url = f"http://127.0.0.1:{port}"
    return {
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__FERNET_KEY": base64.urlsafe_b64encode(bytes.fromhex(home.secret("fernet"))).decode(),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__SECRET_KEY": home.secret("api"),
        "AIRFLOW__API_AUTH__JWT_SECRET": home.secret("jwt"),
    }


def _storage(home: Home, setup: Setup, ports: Mapping[str, int]) -> dict[str, str]:
    url = database_url(home, setup, ports)
    if setup.executor == "local":
        return {DATABASE: url, "AIRFLOW__CORE__EXECUTOR": "LocalExecutor"}
    return {
        DATABASE: url,
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "AIRFLOW__CELERY__BROKER_URL": broker_url(home, setup, ports),
        "AIRFLOW__CELERY__RESULT_BACKEND": f"db+{url}",  # which names its driver: psycopg 3 is not there
    }


def _connection(home: Home, setup: Setup, ports: Mapping[str, int]) -> dict[str, Any]:
    """Where Spark is: in a file, which says it again whenever it changes; for Celery all of it, as for other hosts."""
    if setup.executor == "local" or "spark" not in ports:
        return {"conn_type": "clickjoin", "extra": {"mode": "connect", "url_file": str(home.connect_url)}}
    token = home.secret("spark_connect")
    return {"conn_type": "clickjoin", "host": "localhost", "port": ports["spark"], "password": token}
