"""Where a test's own lake is on the S3 server, and by which way this process asks it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from stack.gateway import Gateway
from tests.s3.proxy import Proxy


def own_place(bucket: str, request: pytest.FixtureRequest) -> str:
    """A lake of each test's own, by its name: what passed the probe is not asked again."""
    return f"s3://{bucket}/{request.node.name.replace('[', '-').replace(']', '')}/p"


@contextmanager
def asking(gateway: Gateway, port: int | None = None) -> Iterator[None]:
    """This process asks the server itself, or what listens at `port`."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in gateway.environment(port).items():
            patch.setenv(name, value)
        yield


@pytest.fixture
def proxy(gateway: Gateway) -> Iterator[Proxy]:
    """This process reaches the server by a proxy, which nobody has probed it through."""
    made = Proxy(gateway.port)
    with asking(gateway, made.port):
        yield made
    made.stop()
