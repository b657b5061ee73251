"""What Airflow stands on: PostgreSQL and Redis, the stack's own, or those that the user names."""

from __future__ import annotations

from collections.abc import Mapping

from bootstrap import Problem

from . import airflow, broker, postgres, processes
from .home import Home
from .setup import Setup, shown

NAMES = (postgres.NAME, broker.NAME)


def needed(setup: Setup) -> list[str]:
    """Those that the stack starts itself."""
    redis = setup.executor == "celery" and setup.broker == broker.NAME
    return [postgres.NAME] * (setup.database == postgres.NAME) + [broker.NAME] * redis


def start(home: Home, port: int, name: str) -> processes.Server:
    """Start one; it is up when `healthy` says so. Errors: Problem."""
    if name == broker.NAME:
        return broker.start(home, port)
    postgres.prepare(home)
    return postgres.start(home, port)


def healthy(home: Home, port: int, name: str) -> bool:
    """Whether one answers who has its password."""
    return postgres.healthy(home, port) if name == postgres.NAME else broker.healthy(broker.url(home, port))


def require_given(setup: Setup) -> None:
    """That those which the user names answer. Errors: Problem."""
    if "://" in setup.database:
        airflow.require_database(setup.database)
    is_redis = setup.executor == "celery" and setup.broker.startswith(("redis://", "rediss://"))
    if is_redis and not broker.healthy(setup.broker):
        raise Problem(f"BROKER={shown(setup.broker)} does not answer, or not with this password")


def workers_wait(home: Home, ports: Mapping[str, int], setup: Setup) -> bool:
    """Whether each worker waits for work at the stack's own broker; another's may have others' workers as well."""
    if broker.NAME not in ports:
        return True
    return broker.healthy(broker.url(home, ports[broker.NAME]), setup.workers)
