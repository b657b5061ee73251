"""An S3 server for all tests of the folder, with a bucket for each module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bootstrap import jars
from bootstrap.once import exclusive
from stack.gateway import Gateway, NoGateway


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A server that runs; where there can be none, the tests say so and are skipped."""
    try:
        server = Gateway(tmp_path_factory.mktemp("s3"))
        server.start()
    except NoGateway as error:
        pytest.skip(f"no S3 server: {error}")
    with exclusive():
        jars.ensure(jars.S3_JARS, jars.S3_LOCK, jars.S3_IVY)
    yield server
    server.kill()
