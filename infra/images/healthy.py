"""A container's health, by the part of it that others use.

    healthy.py connect|api-server|scheduler|dag_processor
    healthy.py listens PORT     whether it takes connections
    healthy.py linked PORT      whether it has a connection to that port elsewhere: a worker to its broker or master

Exit code 0 if it works. Standard library alone: Docker asks every few seconds.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

AIRFLOW = os.environ.get("CLICKJOIN_AIRFLOW_URL", "http://api-server:8080")
CONNECT = int(os.environ.get("CLICKJOIN_CONNECT_PORT", "15443"))
SPARK = int(os.environ.get("CLICKJOIN_SPARK_PORT", "15002"))
_SECONDS = 4
_CONNECTIONS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED = "01"


def connect() -> bool:
    """Whether Spark Connect listens behind its TLS: the handshake alone would do without Spark."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # it is this container itself
    context.set_alpn_protocols(["h2"])
    socket.create_connection(("127.0.0.1", SPARK), _SECONDS).close()
    with (
        socket.create_connection(("127.0.0.1", CONNECT), _SECONDS) as plain,
        context.wrap_socket(plain) as secure,
    ):
        return secure.selected_alpn_protocol() == "h2"


def airflow(part: str) -> bool:
    """Whether a part of Airflow is well, by its heartbeats in the database."""
    with urlopen(f"{AIRFLOW}/api/v2/monitor/health", timeout=_SECONDS) as answer:
        health = json.load(answer)
    return bool(health[part]["status"] == "healthy")


def listens(port: int) -> bool:
    """Whether a server of this container takes connections."""
    socket.create_connection((socket.gethostname(), port), _SECONDS).close()
    return True


def linked(port: int) -> bool:
    """Whether anything in this container has a connection to that port."""
    rows = [line.split() for file in _CONNECTIONS if file.exists() for line in file.read_text().splitlines()[1:]]
    return any(int(row[2].rpartition(":")[2], 16) == port and row[3] == _ESTABLISHED for row in rows)


def main(part: str, port: str = "0") -> int:
    """0 if the part works, else 1, with the reason on stderr."""
    checks: dict[str, Callable[[], bool]] = {
        "connect": connect, "api-server": lambda: airflow("metadatabase"),
        "listens": lambda: listens(int(port)), "linked": lambda: linked(int(port)),
    }  # fmt: skip
    try:
        return 0 if checks.get(part, lambda: airflow(part))() else 1
    except (OSError, KeyError, ValueError) as error:
        print(f"{part}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
