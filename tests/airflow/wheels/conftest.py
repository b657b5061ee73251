"""An environment with nothing in it but the two wheels and what they ask for, of the versions in the lock."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bootstrap import VENV
from wheels.build import build

_PASSED = ("PATH", "JAVA_HOME", "JDK_JAVA_OPTIONS", "UV_CACHE_DIR", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy",
           "NO_PROXY", "no_proxy")  # fmt: skip


@dataclass(frozen=True)
class Installed:
    """The environment, and a folder in which its Airflow lives. Nothing of the checkout is on any path."""

    python: Path
    home: Path

    @property
    def env(self) -> dict[str, str]:
        """What a company's server might have."""
        passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
        path = f"{self.python.parent}:{passed.get('PATH', '')}"
        return passed | {"PATH": path, "HOME": str(self.home), "PYTHONPATH": str(self.home / "adapters")}

    def run(self, *command: str, code: int = 0, env: Mapping[str, str] | None = None) -> str:
        """Run a command of the environment; what it printed."""
        done = subprocess.run(command, cwd=self.home, env={**self.env, **(env or {})}, capture_output=True, text=True)
        assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr


def _install(python: Path, wheels: Sequence[Path]) -> None:
    """Install wheels and what they ask for, as docs/packages.md says."""
    given = [*map(str, wheels), "-c", str(wheels[0].parent / "constraints.txt")]
    subprocess.run([str(VENV / "bin/uv"), "pip", "install", "--quiet", "--python", str(python), *given], check=True)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Both wheels."""
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory, wheels: list[Path]) -> Installed:
    """Both wheels in an empty environment."""
    folder = tmp_path_factory.mktemp("company")
    uv = [str(VENV / "bin/uv"), "venv", "--quiet", "--python", sys.executable, str(folder / "env")]
    subprocess.run(uv, check=True)
    python = folder / "env/bin/python"
    _install(python, wheels)
    (folder / "home/adapters").mkdir(parents=True)
    return Installed(python, folder / "home")
