"""What the plugin tells Airflow of the status page. Cheap to import: every Airflow process does it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

PREFIX = "/clickjoin"
Message = MutableMapping[str, Any]


class LazyApp:
    """The page's app, built when it is first asked for: only the API server ever serves it."""

    def __init__(self) -> None:
        self._app: Any = None

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Serve a request."""
        if self._app is None:
            from clickjoin_airflow.status.app import create

            self._app = create()
        await self._app(scope, receive, send)


FASTAPI_APP = {"app": LazyApp(), "url_prefix": PREFIX, "name": "clickjoin"}
# Relative, so that it also holds where Airflow lies below a path of its host.
VIEW = {
    "name": "clickjoin",
    "href": f"{PREFIX.strip('/')}/",
    "destination": "nav",
    "url_route": "clickjoin",
    "icon": f"{PREFIX.strip('/')}/static/icon.svg",
    "icon_dark_mode": f"{PREFIX.strip('/')}/static/icon-dark.svg",
}
