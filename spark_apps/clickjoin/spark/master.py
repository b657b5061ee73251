"""A cluster's master: whether there is one, asked before a driver starts. Spark itself would wait for a minute."""

from __future__ import annotations

import re
import socket
from contextlib import suppress

from clickjoin.model.errors import ServerLost

_SECONDS = 10.0


def require_answer(master: str) -> None:
    """Check that a standalone master listens; of several (spark://a:7077,b:7077) one is enough. Errors: ServerLost."""
    if not master.startswith("spark://"):
        return
    for host, port in re.findall(r"([^,:/]+|\[[^\]]*\]):(\d+)", master.removeprefix("spark://")):
        with suppress(OSError):
            socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS).close()
            return
    raise ServerLost(f"{master}: no Spark master answers", remedy="Start it, or check the address (spark://HOST:PORT)")
