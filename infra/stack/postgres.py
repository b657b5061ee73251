"""PostgreSQL for Airflow: Debian's programs, on loopback, with a cluster in the stack's folder."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from bootstrap import Problem

from . import processes
from .home import Home

NAME = "postgres"
_NAME = "airflow"  # of user and database
_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin")
_MISSING = "install Debian's package postgresql, or give DATABASE=postgresql+psycopg2://USER:PASSWORD@HOST/NAME"
# Its own files are others' to no one; it refuses to run as root.
_USERS = ("postgres", "nobody")
_LEAVING = 20.0


def url(home: Home, port: int) -> str:
    """Where Airflow finds it, with the password."""
    return f"postgresql+psycopg2://{_NAME}:{home.secret(NAME)}@127.0.0.1:{port}/{_NAME}"


def prepare(home: Home) -> None:
    """Make the cluster, with a user and a database for Airflow, unless it is there. Errors: Problem."""
    data = home.folder / "postgres/data"
    programs = _programs(data)
    if data.exists():
        return
    partial = data.with_name("data.new")
    shutil.rmtree(partial, ignore_errors=True)  # what a start that was killed left
    (data.parent / ".stamp").unlink(missing_ok=True)
    partial.mkdir(parents=True, mode=0o700)
    with _seen(partial) as (place, how):
        _run(home, [programs / "initdb", "-D", place, "--auth=reject", "--username=postgres", "--encoding=UTF8",
                    "--locale=C", "--no-instructions"], how)  # fmt: skip
        # Both are given before it listens, by its input: nobody sees the password, and no server runs without one.
        _run(home, [programs / "postgres", "--single", "-D", place, "postgres"], how,
             f"CREATE ROLE {_NAME} LOGIN PASSWORD '{home.secret(NAME)}';\nCREATE DATABASE {_NAME} OWNER {_NAME};\n",
        )  # fmt: skip
    (partial / "pg_hba.conf").write_text(f"host {_NAME} {_NAME} 127.0.0.1/32 scram-sha-256\n")
    partial.replace(data)


def start(home: Home, port: int) -> processes.Server:
    """Start it; it is up when `healthy` says so. Errors: Problem."""
    data = home.folder / "postgres/data"
    program = _programs(data) / "postgres"
    _await_no_one(data)
    with _seen(data) as (place, how):
        options = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", "max_connections": 200}
        command = [str(program), "-D", place, *(f"--{name}={value}" for name, value in options.items())]
        return processes.start(NAME, command, how.pop("env"), data, home.logs / "postgres.log", **how)


def healthy(home: Home, port: int) -> bool:
    """Whether it answers a query of Airflow's user."""
    from sqlalchemy import create_engine
    from sqlalchemy.exc import SQLAlchemyError

    engine = create_engine(url(home, port), connect_args={"connect_timeout": 3})
    try:
        engine.connect().close()
    except SQLAlchemyError:
        return False
    finally:
        engine.dispose()
    return True


def _programs(data: Path) -> Path:
    """The folder of its programs: of the version that made the cluster, or else the newest."""
    found = [path.parent for pattern in _FOLDERS for path in Path("/").glob(f"{pattern[1:]}/initdb")]
    if on_path := shutil.which("initdb"):
        found.append(Path(on_path).resolve().parent)
    if not found:
        raise Problem(f"DATABASE=postgres: no PostgreSQL on this machine: {_MISSING}")
    by_version = {_version(folder): folder for folder in found}
    if not data.exists():
        return by_version[max(by_version)]
    version = int((data / "PG_VERSION").read_text())
    if version not in by_version:
        raise Problem(
            f"{data} was made by PostgreSQL {version}, but here is {max(by_version)}: install Debian's package "
            f"postgresql-{version}, or give another folder as CLICKJOIN_HOME"
        )
    return by_version[version]


def _version(folder: Path) -> int:
    said = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"(\d+)", said)
    return int(match[1]) if match else 0


@contextmanager
def _seen(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """A folder's path for PostgreSQL, and how a process of it is started.

    Under root it is another user, who cannot pass the closed folders above: the folder is handed over as an open file.
    """
    how: dict[str, Any] = {"env": {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}}
    if os.geteuid():
        yield str(folder), how
        return
    user = _user()
    if folder.stat().st_uid != user.pw_uid:
        os.chown(folder, user.pw_uid, user.pw_gid)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        yield f"/proc/self/fd/{handle}", how | who | {"pass_fds": (handle,), "cwd": "/"}
    finally:
        os.close(handle)


def _user() -> pwd.struct_passwd:
    for name in _USERS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise Problem(f"DATABASE=postgres: PostgreSQL does not run as root, and there is no user {' or '.join(_USERS)}")


def _run(home: Home, command: list[Path | str], how: dict[str, Any], given: str = "") -> None:
    home.logs.mkdir(parents=True, exist_ok=True)
    log = home.logs / "postgres-made.log"
    done = subprocess.run(command, input=given, capture_output=True, text=True, umask=0o077, check=False, **how)
    with log.open("a") as output:
        output.write(done.stdout + done.stderr)
    if done.returncode or "ERROR:" in done.stderr:
        raise Problem(f"PostgreSQL could not make its cluster: see {log}")


def _await_no_one(data: Path) -> None:
    """Who served a server that was killed notices it soon, and must be gone before another takes its place."""
    end = time.monotonic() + _LEAVING
    while any(_works_in(process, data) for process in psutil.process_iter()):
        if time.monotonic() > end:
            raise Problem(f"{data}: a PostgreSQL still works in it")
        time.sleep(0.1)


def _works_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return Path(process.cwd()) == folder
    except (OSError, psutil.Error):
        return False
