"""`make lock`: write the lock files again from what the project asks for."""

from __future__ import annotations

import subprocess
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

from . import INFRA, ROOT, VENV, Problem, doctor, jars

RESOLVED = {
    "infra/uv.in": "infra/uv.lock.txt",
    "infra/requirements.in": "infra/requirements.lock",
    "infra/docs.in": "infra/docs.lock",
}
HEADER = "# What `make lock` found for infra/{}.\n"


def write() -> None:
    """Resolve packages and JARs, and write every lock file."""
    doctor.check_machine()
    if not (VENV / "bin/uv").exists():
        raise Problem("make lock needs the uv of .venv: run make setup first")
    for source, lock in RESOLVED.items():
        _resolve(source, lock)
    for ivy, locked in ((jars.IVY, jars.LOCK), (jars.S3_IVY, jars.S3_LOCK), (jars.KAFKA_IVY, jars.KAFKA_LOCK)):
        with tempfile.TemporaryDirectory() as folder:
            jars.retrieve(Path(folder), ivy)
            files = {name: Path(folder, jars.Jar(name, "").file) for name in coordinates(ivy)}
            lines = [f"{name} sha256:{jars.sha256(file)}\n" for name, file in files.items()]
        locked.write_text(HEADER.format(ivy.name) + "".join(lines))


def coordinates(path: Path = INFRA / "ivy.xml") -> list[str]:
    """What a file for Ivy names, as `group:name:version`."""
    found = xml.parse(path).getroot().iter("dependency")
    return [f"{each.get('org')}:{each.get('name')}:{each.get('rev')}" for each in found]


def _resolve(source: str, lock: str) -> None:
    options = ["--quiet", "--generate-hashes", "--no-emit-index-url", "--python-version", "3.11"]
    command = [str(VENV / "bin/uv"), "pip", "compile", *options, source, "-o", lock]
    if subprocess.run(command, cwd=ROOT).returncode:
        raise Problem(f"{source} could not be resolved: see above")
