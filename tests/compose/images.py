"""The images of docker-compose*.yml, and stand-ins for the bases that they are made of, where none can be pulled.

Stand-ins are Debian's own packages under the names that the Dockerfiles ask for; one that is there is not made again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.compose.engine import CACHE

BASES = Path(__file__).parent / "bases"
PYTHON = "python:3.11-slim-bookworm"
GO = "golang:1.26-bookworm"
OF_DEBIAN = {"postgres:17-alpine": "postgres", "redis:7-alpine": "redis"}
PACKAGES = "python3.11,python3.11-venv,python3-pip,ca-certificates"
COMPOSE = "v2.29.7"  # by `go install`: others have replace lines, or ask for a newer Go
_TRUST = ("etc/ssl/certs/ca-certificates.crt", "etc/ssl/certs/java/cacerts")
_VARIABLES = {
    _TRUST[0]: "SSL_CERT_FILE=/{0} PIP_CERT=/{0}",
    _TRUST[1]: "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=/{0}",
}
# In the order of what is made of what. BuildKit would look for `clickjoin` in a registry.
OURS = {"clickjoin": "clickjoin", "clickjoin-executor": "executor", "clickjoin-s3": "s3"}


class Docker:
    """The command, at an engine."""

    def __init__(self, host: str | None) -> None:
        self.env = os.environ | {"DOCKER_BUILDKIT": "0"} | ({"DOCKER_HOST": host} if host else {})

    def __call__(self, *arguments: str) -> str:
        """What it prints. Errors: RuntimeError with the end of what it says."""
        done = subprocess.run(["docker", *arguments], env=self.env, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"docker {' '.join(arguments)}: {(done.stdout + done.stderr)[-3000:]}")
        return done.stdout

    def has(self, image: str) -> bool:
        """Whether the engine has an image."""
        return not subprocess.run(["docker", "image", "inspect", image], env=self.env, capture_output=True).returncode

    def pulled(self, image: str) -> bool:
        """Whether it is there, or comes from where such images are."""
        if self.has(image):
            return True
        try:
            pull = subprocess.run(["docker", "pull", "--quiet", image], env=self.env, capture_output=True, timeout=600)
        except subprocess.TimeoutExpired:
            return False
        return not pull.returncode

    def build(self, image: str, dockerfile: Path, context: Path) -> None:
        """Build it on the machine's own network: the packages' servers are reached from there."""
        self("build", "--network", "host", "--tag", image, "--file", str(dockerfile), str(context))


def bases(docker: Docker) -> None:
    """Have all images that the Dockerfiles and docker-compose*.yml name."""
    if not docker.pulled(PYTHON):
        bootstrap(docker, PYTHON)
    if not docker.pulled(GO):
        root = subprocess.run(["go", "env", "GOROOT"], capture_output=True, text=True, check=True).stdout.strip()
        docker.build(GO, BASES / "golang.Dockerfile", Path(root).resolve())
    for image, name in OF_DEBIAN.items():
        if not docker.pulled(image):
            docker.build(image, BASES / f"{name}.Dockerfile", BASES)


def bootstrap(docker: Docker, image: str) -> None:
    """A Debian with Python, which trusts whom this machine trusts."""
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="rootfs-") as folder:
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", folder]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"debootstrap: {done.stdout[-2000:]}{done.stderr[-1000:]}")
        (Path(folder) / "usr/bin/python").symlink_to("python3.11")
        changes = []
        for name, variables in _VARIABLES.items():
            if Path("/", name).is_file():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(Path("/", name), Path(folder) / name)
                changes += ["--change", f"ENV {variables.format(name)}"]
        with subprocess.Popen(["tar", "-C", folder, "-c", "."], stdout=subprocess.PIPE) as archive:
            subprocess.run(
                ["docker", "import", *changes, "-", image], stdin=archive.stdout, env=docker.env, check=True,
                capture_output=True,
            )  # fmt: skip
        assert archive.returncode == 0


def ours(docker: Docker, tree: Path) -> None:
    """Build the project's own images of a tree; the engine's cache knows what did not change."""
    for image, name in OURS.items():
        docker.build(image, tree / f"infra/images/{name}.Dockerfile", tree)
    docker("image", "prune", "--force")


def compose_tool(docker: Docker) -> list[str]:
    """Compose: Docker's, or built of Go's modules into the cache, once."""
    version = subprocess.run(["docker", "compose", "version"], env=docker.env, capture_output=True)
    if not version.returncode:
        return ["docker", "compose"]
    made = CACHE / f"docker-compose-{COMPOSE}"
    if not made.exists():
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            subprocess.run(
                ["go", "install", f"github.com/docker/compose/v2/cmd@{COMPOSE}"],
                env=os.environ | {"GOBIN": folder, "GOFLAGS": "-mod=mod -buildvcs=false"}, check=True,
            )  # fmt: skip
            (Path(folder) / "cmd").replace(made)
    return [str(made)]
