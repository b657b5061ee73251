"""Choose and watch loopback ports."""

from __future__ import annotations

import random
import socket

from bootstrap import Problem
from bootstrap.doctor import check_port, port_free

# Below where systems take ports for outgoing connections: what is free now will be when the server is up.
CANDIDATES = range(20000, 32000)


def choose(wanted: int | str, name: str) -> int:
    """The wanted port, which must be free, or any free one for `auto`; `name` is the setting's name."""
    if wanted in ("auto", 0):
        return next(port for port in random.sample(CANDIDATES, len(CANDIDATES)) if port_free(port))
    try:
        port = int(wanted)
    except ValueError as error:
        raise Problem(f"{name} is {wanted}, but must be a number or auto") from error
    check_port(port, name)
    return port


def answers(port: int) -> bool:
    """Whether a server listens on the port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
