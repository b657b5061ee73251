"""An engine with the images of this tree, for both sets."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.compose import engine, images
from tests.compose.containers import copy_tree


class Ground(NamedTuple):
    """A Docker engine that has the images, and the tree that they are of."""

    docker: images.Docker
    tree: Path


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Skips where there is no engine, and none can be made; what the engine changed on this machine is as before."""
    before = engine.rules()
    try:
        with engine.engine() as host:
            docker = images.Docker(host)
            tree = copy_tree(tmp_path_factory.mktemp("tree"))
            images.bases(docker)
            images.ours(docker, tree)
            subprocess.run([sys.executable, tree / "infra/images/make_secrets.py"], check=True)
            yield Ground(docker, tree)
            shutil.rmtree(tree)
    except engine.NoEngine as error:
        pytest.skip(str(error))
    if host:
        assert engine.rules() == before
        assert engine.mounts(engine.CACHE / "docker") == []
