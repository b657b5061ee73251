"""What the plugin tells Airflow of the status page. Cheap to import: every Airflow process does it."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, MutableMapping
from threading import Lock, Thread
from typing import Any

PREFIX = "/clickjoin"
Message = MutableMapping[str, Any]


class LazyApp:
    """The page's app, built when it is first asked for, or warmed up for: only the API server ever serves it."""

    def __init__(self) -> None:
        self._app: Any = None
        self._lock = Lock()

    def app(self) -> Any:
        """The app itself."""
        with self._lock:
            if self._app is None:
                from clickjoin_airflow.status.app import create

                self._app = create()
            return self._app

    def warm_up(self) -> None:
        """Build it in the background where an API server is starting, and read the last day of every pipeline."""
        if "uvicorn" in sys.modules and "airflow.api_fastapi.app" in sys.modules:
            Thread(target=lambda: self.app().state.views.read_ahead(), name="clickjoin-status", daemon=True).start()

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Serve a request."""
        await (self._app or self.app())(scope, receive, send)


APP = LazyApp()
FASTAPI_APP = {"app": APP, "url_prefix": PREFIX, "name": "clickjoin"}
# Relative, so that it also holds where Airflow lies below a path of its host.
VIEW = {
    "name": "clickjoin",
    "href": f"{PREFIX.strip('/')}/",
    "destination": "nav",
    "url_route": "clickjoin",
    "icon": f"{PREFIX.strip('/')}/static/icon.svg",
    "icon_dark_mode": f"{PREFIX.strip('/')}/static/icon-dark.svg",
}
