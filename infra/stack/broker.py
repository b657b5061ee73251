"""Redis, which carries Celery's messages: Debian's program, on loopback, with its files in the stack's folder."""

from __future__ import annotations

import shutil

from bootstrap import Problem

from . import processes
from .home import Home, write_private

NAME = "redis"
_SETTINGS = """\
bind 127.0.0.1
port {port}
requirepass {password}
# A message is on disk before it is acknowledged: anyone who kills the server loses no task that was handed over.
appendonly yes
save ""
"""


def url(home: Home, port: int) -> str:
    """Where Celery finds it, with the password."""
    return f"redis://:{home.secret(NAME)}@127.0.0.1:{port}/0"


def start(home: Home, port: int) -> processes.Server:
    """Start it; it is up when `healthy` says so. Errors: Problem."""
    program = shutil.which("redis-server")
    if not program:
        raise Problem(
            "EXECUTOR=celery: no Redis on this machine: install Debian's package redis-server, or give "
            "BROKER=redis://:PASSWORD@HOST:6379/0"
        )
    folder = home.folder / "redis"
    folder.mkdir(mode=0o700, exist_ok=True)
    write_private(folder / "redis.conf", _SETTINGS.format(port=port, password=home.secret(NAME)))
    return processes.start(NAME, [program, "redis.conf"], {"PATH": "/usr/bin:/bin"}, folder, home.logs / "redis.log")


def healthy(address: str, workers: int = 0) -> bool:
    """Whether it answers, and so many workers wait there for work."""
    import redis

    try:
        with redis.Redis.from_url(address, socket_timeout=3, socket_connect_timeout=3) as client:
            client.ping()
            return not workers or sum("b" in one["flags"] for one in client.client_list()) >= workers
    except redis.RedisError:
        return False
