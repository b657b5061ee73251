"""The cluster of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bootstrap import jars
from bootstrap.once import exclusive
from stack.gateway import NoGateway
from tests.cluster.servers import NoCluster
from tests.cluster.site import Site, site


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A cluster that runs; where there can be none, the tests say so and are skipped."""
    with exclusive():
        jars.ensure(jars.S3_JARS, jars.S3_LOCK, jars.S3_IVY)
    made = site(tmp_path_factory.mktemp("cluster"))
    try:
        found = made.__enter__()
    except (NoGateway, NoCluster) as error:
        pytest.skip(f"no cluster: {error}")
    yield found
    made.__exit__(None, None, None)
