"""Spark's classes as the JVM has them when they are loaded, in a file: a process that starts from it saves a fifth.

Made once a checkout, by a short drain; a JVM that finds other JARs, or is another Java, passes it over.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
ARCHIVE = ROOT / ".run/tests/spark.jsa"
LOCKS = ("requirements.lock", "jars.lock")
# A JVM's remarks on an archive go to its output, which Spark's launcher reads as a command.
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"


def options(given: str) -> str:
    """JDK_JAVA_OPTIONS for tests: those given, and the archive where one could be made."""
    try:
        if not _is_new():
            _make(given)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"Spark starts without an archive of its classes, which takes longer: {error}", flush=True)
        return given
    return f"{given} -XX:SharedArchiveFile={ARCHIVE} {_QUIET}"


def _is_new() -> bool:
    locks = [(ROOT / "infra" / name).stat().st_mtime for name in LOCKS]
    return ARCHIVE.is_file() and ARCHIVE.stat().st_mtime > max(locks)


def _make(given: str) -> None:
    """Join the shipped clicks by one process, which leaves its classes behind when it ends."""
    print("making an archive of Spark's classes", flush=True)
    ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    made = ARCHIVE.with_suffix(".new")
    with tempfile.TemporaryDirectory(prefix="clickjoin-classes-") as name:
        folder = Path(name)
        shutil.copytree(ROOT / "infra/data/zozo/clicks", folder / "logs")
        shutil.copy(ROOT / "docs/one-stream.yaml", folder)
        subprocess.run(
            [sys.executable, "-m", "clickjoin.cli", "drain", "--config", folder / "one-stream.yaml"],
            env=os.environ | {"JDK_JAVA_OPTIONS": f"{given} -XX:ArchiveClassesAtExit={made} {_QUIET}"},
            capture_output=True,
            timeout=300,
            check=True,
        )
    made.replace(ARCHIVE)
