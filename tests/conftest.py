"""Property tests search the same examples in every run; HYPOTHESIS_PROFILE=explore searches new and many more."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=3000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--lake s3`: the tests of Spark have their lakes on a real S3 server, not on the disk."""
    parser.addoption("--lake", choices=("local", "s3"), default="local")
