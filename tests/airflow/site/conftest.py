"""Airflow with the status page, started once for all tests that look at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.airflow.site.server import Site
from tests.airflow.site.server import site as running


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, write_pipeline: Callable[..., Path]) -> Iterator[Site]:
    """On a lake made by hand."""
    with running(tmp_path_factory.mktemp("site"), write_pipeline) as started:
        yield started
