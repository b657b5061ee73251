"""PostgreSQL and Redis of a stack: the real ones, on loopback, for who has the password, and unharmed by kills."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import redis
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from bootstrap import Problem
from stack import broker, ground, ports, postgres, processes
from stack.home import Home
from stack.setup import Setup
from tests.intruder import listening

Start = Callable[[str], processes.Server]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.make()
    return home


@pytest.fixture
def start(home: Home) -> Iterator[Start]:
    """Starts one, on the same port each time, and waits until it answers."""
    chosen, started = {name: ports.choose("auto", name) for name in ground.NAMES}, list[processes.Server]()

    def begin(name: str) -> processes.Server:
        started.append(ground.start(home, chosen[name], name))
        end = time.monotonic() + 60
        while not ground.healthy(home, chosen[name], name):
            assert started[-1].alive(), Path(started[-1].log).read_text()
            assert time.monotonic() < end
            time.sleep(0.05)
        begin.port = chosen[name]  # type: ignore[attr-defined]
        return started[-1]

    yield begin
    processes.stop(started, patience=15, ask=signal.SIGINT)
    assert not any(server.alive() for server in started)


def port(start: Start) -> int:
    return start.port  # type: ignore[attr-defined,no-any-return]


@pytest.mark.skipif(not shutil.which("redis-server"), reason="needs Debian's redis-server")
def test_redis_keeps_what_it_was_given(home: Home, start: Start) -> None:
    server = start(broker.NAME)
    address = broker.url(home, port(start))
    redis.Redis.from_url(address).lpush("q", "task")
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=port(start)).ping()
    assert {where for where, _ in listening(server.pid)} == {"127.0.0.1"}
    assert home.secret("redis") not in " ".join(psutil.Process(server.pid).cmdline())
    os.kill(server.pid, signal.SIGKILL)
    processes.stop([server])
    start(broker.NAME)
    assert redis.Redis.from_url(address).lrange("q", 0, -1) == [b"task"]


@pytest.mark.skipif(not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")), reason="needs Debian's postgresql")
def test_postgres_keeps_what_it_was_given(home: Home, start: Start) -> None:
    """Also below folders that its user cannot pass, as those of pytest are."""
    server = start(postgres.NAME)
    address = postgres.url(home, port(start))
    engine = create_engine(address, pool_pre_ping=True)
    with engine.begin() as database:
        database.execute(text("CREATE TABLE kept AS SELECT 7 AS x"))
    with pytest.raises(OperationalError, match="password authentication failed"):
        create_engine(address.replace(home.secret("postgres"), "another")).connect()
    assert {where for where, _ in listening(server.pid)} == {"127.0.0.1"}
    assert psutil.Process(server.pid).uids().effective != 0
    assert stat.S_IMODE((home.folder / "postgres/data").stat().st_mode) == 0o700
    assert home.secret("postgres") not in Path(server.log).read_text()
    os.kill(server.pid, signal.SIGKILL)  # while its own processes still serve a connection
    processes.stop([server])
    server = start(postgres.NAME)
    with engine.connect() as database:
        assert database.execute(text("SELECT x FROM kept")).scalar() == 7
    processes.stop([server], patience=15, ask=signal.SIGINT)  # though somebody is connected
    assert "database system is shut down" in Path(server.log).read_text()


def test_a_machine_without_them_hears_what_to_install(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(postgres, "_FOLDERS", ())
    with pytest.raises(Problem, match=r"^EXECUTOR=celery: no Redis .*: install Debian's package redis-server, or give"):
        ground.start(home, 1, broker.NAME)
    with pytest.raises(Problem, match=r"^DATABASE=postgres: no PostgreSQL .*: install Debian's package postgresql, or"):
        ground.start(home, 1, postgres.NAME)


def test_those_of_the_user_are_asked_first() -> None:
    celery = {
        "DATABASE": f"postgresql+psycopg2://me:hush@127.0.0.1:{ports.choose('auto', 'x')}/d",
        "EXECUTOR": "celery",
    }
    with pytest.raises(
        Problem, match=r"^DATABASE=postgresql\+psycopg2://127.0.0.1:\d+/d cannot be used: .*refused"
    ) as no:
        ground.require_given(Setup.given(celery))
    assert "hush" not in str(no.value)
    silent = Setup("postgres", "celery", broker=f"redis://:hush@127.0.0.1:{ports.choose('auto', 'x')}/0")
    with pytest.raises(Problem, match=r"^BROKER=redis://127.0.0.1:\d+/0 does not answer") as no:
        ground.require_given(silent)
    assert "hush" not in str(no.value)
