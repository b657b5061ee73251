"""Staging what a wheel holds, and having uv build it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from bootstrap import INFRA, JARS, ROOT, VENV, Problem, logstore
from clickjoin import __version__

_HERE = Path(__file__).parent
_PLACE = re.compile(r"@(\w+)@")
_VERSION = re.compile(r"[A-Za-z0-9][^ ]*==")


@dataclass(frozen=True)
class Wheel:
    """One wheel: the checkout's package in it, and other files by their place in that package."""

    name: str
    package: Path
    beside: Mapping[str, Path]


WHEELS = (
    Wheel(
        "clickjoin",
        ROOT / "spark_apps/clickjoin",
        {
            "jobs/entry/run_job.py": ROOT / "spark_apps/run_job.py",
            # What `clickjoin jars` gives to a Spark that no `make setup` has made.
            f"spark/carried/{logstore.JAR}": JARS / logstore.JAR,
            "spark/carried/logstore": INFRA / "logstore",
            "spark/carried/jars.lock": INFRA / "jars.lock",
            "spark/carried/ivy.xml": INFRA / "ivy.xml",
            "spark/carried/jars-s3.lock": INFRA / "jars-s3.lock",
            "spark/carried/ivy-s3.xml": INFRA / "ivy-s3.xml",
            "spark/carried/ivysettings.xml": INFRA / "ivysettings.xml",
        },
    ),
    Wheel("clickjoin-airflow", ROOT / "plugins/clickjoin_airflow", {}),
)


def build(out: Path) -> list[Path]:
    """Build both wheels into a folder, and remove those of other versions there. Errors: Problem.

    `constraints.txt` beside them names the tested versions, without hashes: pip would ask for those of the wheels too.
    """
    out = out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    for wheel in WHEELS:
        for old in out.glob(f"{wheel.package.name}-*.whl"):
            old.unlink()
        with tempfile.TemporaryDirectory() as folder:
            stage(wheel, Path(folder))
            _uv_build(Path(folder), out)
    (out / "constraints.txt").write_text(constraints((INFRA / "requirements.lock").read_text()), encoding="utf-8")
    return [out / f"{wheel.package.name}-{__version__}-py3-none-any.whl" for wheel in WHEELS]


def constraints(lock: str) -> str:
    """The versions that a lock file names, one a line."""
    return "".join(f"{line.rstrip(chr(92)).strip()}\n" for line in lock.splitlines() if _VERSION.match(line))


def stage(wheel: Wheel, folder: Path) -> None:
    """Put what a wheel is made of into a folder."""
    package = folder / wheel.package.name
    shutil.copytree(wheel.package, package, ignore=shutil.ignore_patterns("__pycache__"))
    for place, source in wheel.beside.items():
        target = package / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copyfile(source, target)
    for name in ("LICENSE", "README.md"):
        shutil.copyfile(ROOT / name, folder / name)
    known = {"version": __version__, "uv": version("uv")}
    text = (_HERE / f"{wheel.name}.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(_PLACE.sub(lambda found: known[found[1]], text), encoding="utf-8")


def _uv_build(folder: Path, out: Path) -> None:
    # uv holds its own build backend, so that nothing is fetched.
    options = ["--wheel", "--offline", "--no-config", "--python", sys.executable, "--out-dir", str(out)]
    command = [str(VENV / "bin/uv"), "build", *options, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print("\n".join((done.stdout + done.stderr).splitlines()[-20:]))
        raise Problem("a wheel could not be built: see above; run make setup first")
