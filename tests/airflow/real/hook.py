"""An alert hook as a user would write one: it posts the alert to where TELL_URL says."""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener


def tell(alert: dict[str, Any]) -> None:
    """Send it on."""
    body = json.dumps(alert).encode()
    build_opener(ProxyHandler({})).open(Request(os.environ["TELL_URL"], body, method="POST"), timeout=5).close()
