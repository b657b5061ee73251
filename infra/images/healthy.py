"""A container's health, by the part of it that others use: `healthy.py connect|api-server|scheduler|dag_processor`.

Exit code 0 if it works. Standard library alone: Docker asks every few seconds.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import sys
from collections.abc import Callable
from urllib.request import urlopen

AIRFLOW = os.environ.get("CLICKJOIN_AIRFLOW_URL", "http://api-server:8080")
CONNECT = int(os.environ.get("CLICKJOIN_CONNECT_PORT", "15443"))
SPARK = int(os.environ.get("CLICKJOIN_SPARK_PORT", "15002"))
_SECONDS = 4


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


def main(part: str) -> int:
    """0 if the part works, else 1, with the reason on stderr."""
    checks: dict[str, Callable[[], bool]] = {"connect": connect, "api-server": lambda: airflow("metadatabase")}
    try:
        return 0 if checks.get(part, lambda: airflow(part))() else 1
    except (OSError, KeyError, ValueError) as error:
        print(f"{part}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
