"""JSON over HTTP to a loopback server."""

from __future__ import annotations

import json
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

# A proxy that the machine names cannot reach this machine's loopback.
_opener = build_opener(ProxyHandler({}))


def request(url: str, method: str = "GET", body: Any = None, token: str | None = None, timeout: float = 10) -> Any:
    """Send JSON, return the answer's JSON; an error status is an `OSError`."""
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    with _opener.open(Request(url, data, headers, method=method), timeout=timeout) as answer:
        content = answer.read()
    return json.loads(content) if content else None
