"""Where the servers of S3 are: what pipelines' files say of their own places, and the environment of all else.

A process may work on lakes of several stores (the status page does), so none of it is written to the environment. It
travels to executors with the code that asks for it, and holds no secret.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple


class Store(NamedTuple):
    """A server of S3: its endpoint (None: Amazon's own), region, and whether buckets are part of the path."""

    endpoint: str | None = None
    region: str | None = None
    path_style: bool | None = None

    @property
    def address(self) -> tuple[str, str]:
        """Scheme and address of the endpoint."""
        scheme, _, address = (self.endpoint or "").rpartition("://")
        return scheme or "https", address

    @property
    def has_tls(self) -> bool:
        """Whether requests are encrypted on their way."""
        return self.address[0] == "https"


_declared: dict[str, Store] = {}


def declare(place: str, store: Store | None) -> None:
    """Have a place on S3, and all below it, lie in a store; None: in the one that the environment names."""
    if store is None:
        _declared.pop(place.rstrip("/"), None)
    else:
        _declared[place.rstrip("/")] = store


def declared(place: str) -> Store | None:
    """What was declared of a place, or of the nearest one above it; None where nothing was."""
    above = [known for known in _declared if f"{place}/".startswith(f"{known}/")]
    return _declared[max(above, key=len)] if above else None


def store_of(place: str, environment: Mapping[str, str] | None = None) -> Store:
    """The store that a place lies in: each field as declared, else as the environment (`AWS_*`) has it.

    With an endpoint of one's own a bucket is part of the path, unless something says otherwise.
    """
    said = declared(place) or Store()
    known = of_environment(os.environ if environment is None else environment)
    endpoint, path_style = said.endpoint or known.endpoint, said.path_style
    if path_style is None:
        path_style = known.path_style
    return Store(endpoint, said.region or known.region, bool(endpoint) if path_style is None else path_style)


def of_environment(environment: Mapping[str, str]) -> Store:
    """The store that an environment names. An endpoint for S3 goes before one for all of a vendor's services."""
    virtual = environment.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "").lower()
    return Store(
        environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or None,
        environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or None,
        virtual not in ("1", "true", "yes", "on") if virtual else None,
    )
