"""An S3 server for all tests of the folder, with a bucket for each module; with `--lake s3` all lakes lie there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bootstrap import jars
from bootstrap.once import exclusive
from stack.gateway import Gateway, NoGateway

BUCKET = "benches"


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


@pytest.fixture(scope="session")
def lakes(request: pytest.FixtureRequest) -> Iterator[Path | None]:
    """With `--lake s3` the folder of the bucket that all lakes lie in, by the bucket's name; else None."""
    if request.config.getoption("--lake") != "s3":
        yield None
        return
    server: Gateway = request.getfixturevalue("gateway")
    server.bucket(BUCKET)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment().items():
            patch.setenv(name, value)
        yield server.folder / "data" / BUCKET
