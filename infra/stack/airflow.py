"""Airflow's parts: API server, DAG processor, schedulers, and Celery's workers where there are some."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any

from bootstrap import INFRA, VENV, Problem
from bootstrap.once import exclusive, fingerprint, stamp, stamped

from . import processes, web
from .airflow_settings import CONNECTION, DATABASE, POOL, sqlite
from .home import Home, write_private
from .setup import Setup, shown

USER = "admin"
# The API server's: it commits what it logs of a request in its event loop, where other requests' transactions end, and
# so can wait for itself and answer nobody meanwhile. Anyone who asked gets error 500 and asks again, as tasks do.
_API_PATIENCE = 5
# Who needs no log server of its own has none: logs lie in files that the API server reads.
PARTS = {
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
    # No task waits in it: Airflow's first page shows it red where it is missing.
    "triggerer": ["triggerer", "--skip-serve-logs"],
    "api-server": ["api-server", "--host", "127.0.0.1", "--port", "{port}", "--workers", "1"],
    "worker": ["celery", "worker", "--skip-serve-logs", "--without-gossip", "--without-mingle",
               "--celery-hostname", "{name}@%h"],
}  # fmt: skip


def parts(setup: Setup) -> list[str]:
    """Names of all parts, those of the same kind numbered from the second on."""
    workers = setup.workers if setup.executor == "celery" else 0
    return [*_numbered("scheduler", setup.schedulers), "dag-processor", "api-server", *_numbered("worker", workers)]


def _numbered(kind: str, count: int) -> list[str]:
    return [kind if number == 1 else f"{kind}-{number}" for number in range(1, count + 1)]


def prepare(home: Home, env: Mapping[str, str], setup: Setup) -> None:
    """Make the password, the database, and the pool for work on dates, unless they are there. Errors: Problem."""
    if not home.passwords.exists():
        write_private(home.passwords, json.dumps({USER: secrets.token_urlsafe(12)}))
    (home.folder / "airflow").mkdir(parents=True, exist_ok=True)
    _make_tables(home, env, setup)
    _make_pool(env[DATABASE])


def _make_tables(home: Home, env: Mapping[str, str], setup: Setup) -> None:
    """Tables of this Airflow. What is done is marked beside the stack's own database; another's is always asked."""
    version = fingerprint(INFRA / "requirements.lock")
    folder = {"sqlite": home.folder / "airflow", "postgres": home.folder / "postgres"}.get(setup.database)
    if folder and stamped(folder, version):
        return
    if setup.database != "sqlite" or (home.folder / "airflow/airflow.db").exists():
        migrate(home, env)
    else:
        shutil.copyfile(_empty_database(home, env, version), home.folder / "airflow/.airflow.db")
        (home.folder / "airflow/.airflow.db").replace(home.folder / "airflow/airflow.db")
    if folder:
        stamp(folder, version)


def _make_pool(url: str) -> None:
    """Airflow's own command takes seconds for it. Slots that someone has set stay as they are."""
    from sqlalchemy import create_engine, text

    engine = create_engine(url)
    with engine.begin() as database:
        if engine.dialect.name == "sqlite":
            # Who reads and who writes need not wait for each other; it stays.
            database.exec_driver_sql("PRAGMA journal_mode=WAL")
        add = "INSERT INTO slot_pool (pool, slots, description, include_deferred) VALUES (:pool, 1, :about, :no)"
        values = {"pool": POOL, "about": "dates that are worked on at a time", "no": False}
        database.execute(text(f"{add} ON CONFLICT (pool) DO NOTHING"), values)
    engine.dispose()


def require_database(url: str) -> None:
    """That a database of the user's answers. Errors: Problem."""
    from sqlalchemy import create_engine
    from sqlalchemy.exc import SQLAlchemyError

    engine = create_engine(url)
    try:
        engine.connect().close()
    except SQLAlchemyError as error:
        said = str(getattr(error, "orig", error)).strip().splitlines()[0]
        raise Problem(f"DATABASE={shown(url)} cannot be used: {said}") from None
    finally:
        engine.dispose()


def _empty_database(home: Home, env: Mapping[str, str], version: str) -> Path:
    """A database with tables and no rows of anyone's; made once, as that takes longer than a start."""
    template = VENV / f"airflow-{version[:12]}.db"
    with exclusive(VENV):
        if not template.exists():
            partial = template.with_suffix(".new")
            partial.unlink(missing_ok=True)
            migrate(home, {**env, DATABASE: f"sqlite:///{partial}"})
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


def start(
    home: Home, port: int, env: Mapping[str, str], setup: Setup, more: Sequence[str] = ()
) -> Iterator[processes.Server]:
    """Start the parts one by one, and `more` that nobody waits for; they are up when `healthy` says so."""
    for name in (*parts(setup), *more):
        yield start_part(home, port, env, name)


def start_part(home: Home, port: int, env: Mapping[str, str], name: str) -> processes.Server:
    """Start one part."""
    env, kind = dict(env), name.rstrip("-0123456789")
    if kind == "api-server" and env[DATABASE] == sqlite(home):
        env[DATABASE] = sqlite(home, _API_PATIENCE)
    if kind == "triggerer" or (kind != "api-server" and env["AIRFLOW__CORE__EXECUTOR"] == "CeleryExecutor"):
        del env[CONNECTION]  # tasks ask the API server for it, as those on other hosts do
    command = _airflow(*(part.format(port=port, name=name) for part in PARTS[kind]))
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
