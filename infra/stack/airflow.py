"""Airflow's parts: API server, scheduler and DAG processor, on SQLite with LocalExecutor."""

from __future__ import annotations

import base64
import json
import secrets
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any

from bootstrap import INFRA, VENV, Problem
from bootstrap.once import exclusive, fingerprint, stamp, stamped

from . import processes, web
from .home import Home, write_private

SETTINGS = INFRA / "airflow/airflow.env"
USER = "admin"
POOL = "clickjoin_backfill"
# Seconds that a part waits for another's transaction. After SQLite's own five, a scheduler of 30 pipelines gave up.
_PATIENCE = 60
# The API server's: it commits what it logs of a request in its event loop, where other requests' transactions end, and
# so can wait for itself and answer nobody meanwhile. Whoever asked gets error 500 and asks again, as tasks do.
_API_PATIENCE = 5
_DATABASE = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"
# Who needs no log server of its own has none: logs lie in files that the API server reads.
PARTS = {
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
    "api-server": ["api-server", "--host", "127.0.0.1", "--port", "{port}", "--workers", "1"],
}


def environment(env: Mapping[str, str], home: Home, port: int, dags: Path, plugins: Path) -> dict[str, str]:
    """Airflow's settings as variables, which is also what its command line needs."""
    url = f"http://127.0.0.1:{port}"
    connection = {"conn_type": "clickjoin", "extra": {"mode": "connect", "url_file": str(home.connect_url)}}
    fernet = base64.urlsafe_b64encode(bytes.fromhex(home.secret("fernet"))).decode()
    lines = [line for line in SETTINGS.read_text().splitlines() if line and not line.startswith("#")]
    return {
        **env,
        **dict(line.split("=", 1) for line in lines),
        "AIRFLOW_HOME": str(home.folder / "airflow"),
        _DATABASE: _sqlite(home, _PATIENCE),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(plugins),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home.passwords),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__FERNET_KEY": fernet,
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__SECRET_KEY": home.secret("api"),
        "AIRFLOW__API_AUTH__JWT_SECRET": home.secret("jwt"),
        "AIRFLOW_CONN_CLICKJOIN_SPARK": json.dumps(connection),
        "CLICKJOIN_POOL": POOL,
    }


def _sqlite(home: Home, patience: int) -> str:
    return f"sqlite:///{home.folder / 'airflow/airflow.db'}?timeout={patience}"


def prepare(home: Home, env: Mapping[str, str]) -> None:
    """Make the password, the database, and the pool for work on dates, unless they are there."""
    _prepare(home, env)
    with closing(sqlite3.connect(home.folder / "airflow/airflow.db")) as database, database:
        database.execute("PRAGMA journal_mode=WAL")  # who reads and who writes need not wait for each other; it stays
        # Airflow's own command takes seconds for it. Slots that somebody has set stay as they are.
        database.execute(
            "INSERT OR IGNORE INTO slot_pool (pool, slots, description, include_deferred) VALUES (?, 1, ?, 0)",
            (POOL, "dates that are worked on at a time"),
        )


def _prepare(home: Home, env: Mapping[str, str]) -> None:
    if not home.passwords.exists():
        write_private(home.passwords, json.dumps({USER: secrets.token_urlsafe(12)}))
    folder, version = home.folder / "airflow", fingerprint(INFRA / "requirements.lock")
    if stamped(folder, version):
        return
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "airflow.db").exists():
        migrate(home, env)
    else:
        shutil.copyfile(_empty_database(home, env, version), folder / ".airflow.db")
        (folder / ".airflow.db").replace(folder / "airflow.db")
    stamp(folder, version)


def _empty_database(home: Home, env: Mapping[str, str], version: str) -> Path:
    """A database with tables and no rows of anyone's; made once, as that takes longer than a start."""
    template = VENV / f"airflow-{version[:12]}.db"
    with exclusive(VENV):
        if not template.exists():
            partial = template.with_suffix(".new")
            partial.unlink(missing_ok=True)
            migrate(home, {**env, _DATABASE: f"sqlite:///{partial}"})
            partial.replace(template)
    return template


def migrate(home: Home, env: Mapping[str, str]) -> None:
    """Bring the database's tables up to this Airflow."""
    home.logs.mkdir(parents=True, exist_ok=True)
    log = home.logs / "airflow-migrate.log"
    with log.open("wb") as output:
        done = subprocess.run(_airflow("db", "migrate"), env=env, stdout=output, stderr=subprocess.STDOUT)
    if done.returncode:
        raise Problem(f"Airflow could not make its database: see {log}")


def start(home: Home, port: int, env: Mapping[str, str]) -> Iterator[processes.Server]:
    """Start the parts one by one; they are up when `healthy` says so."""
    for name in PARTS:
        yield start_part(home, port, env, name)


def start_part(home: Home, port: int, env: Mapping[str, str], name: str) -> processes.Server:
    """Start one part."""
    if name == "api-server":
        env = {**env, _DATABASE: _sqlite(home, _API_PATIENCE)}
    command = _airflow(*(part.format(port=port) for part in PARTS[name]))
    return processes.start(name, command, env, home.folder / "airflow", home.logs / f"{name}.log")


def healthy(port: int, since: datetime) -> bool:
    """Whether all parts work, by heartbeats that are later than `since`."""
    try:
        health: dict[str, Any] = web.request(f"http://127.0.0.1:{port}/api/v2/monitor/health")
    except (OSError, HTTPException, ValueError):
        return False
    beats = [health[part].get(f"latest_{part}_heartbeat") for part in ("scheduler", "dag_processor")]
    return health["metadatabase"]["status"] == "healthy" and all(
        beat and datetime.fromisoformat(beat) >= since for beat in beats
    )


def _airflow(*arguments: str) -> list[str]:
    # -P: whatever lies in the working folder must not become importable.
    return [sys.executable, "-P", "-m", "airflow", *arguments]
