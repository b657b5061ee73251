"""Is this machine fit? Each finding is one line that says what to do."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from . import ROOT, Problem

PYTHON = (3, 11)
JAVAS = (17, 21)
DEFAULT_PORTS = {"SPARK_PORT": 15002, "AIRFLOW_PORT": 8080}


def check_machine() -> None:
    """Raise the first thing that keeps this machine from being set up."""
    check_python(sys.version_info[:2])
    check_writable(ROOT)
    find_java()


def report() -> None:
    """Check machine and ports, and say what was found."""
    check_machine()
    java, version = find_java()
    print(f"Python {sys.version.split()[0]}, Java {version} ({java}): good")
    for name, default in DEFAULT_PORTS.items():
        port = os.environ.get(name) or str(default)
        if port.isdigit():
            check_port(int(port), name)
            print(f"port {port}: free")


def check_python(version: tuple[int, ...]) -> None:
    """The lock file is resolved for one Python version."""
    if tuple(version) != PYTHON:
        found = ".".join(str(part) for part in version)
        raise Problem(f"Python {found} found, but 3.11 is needed: install it, or run make PYTHON=<your python3.11>")


def check_writable(folder: Path) -> None:
    """Set-up writes into the checkout alone, so it must be allowed to."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise Problem(
            f"cannot write in {folder} ({error.strerror}): make it yours, or use a checkout that is"
        ) from error


def find_java() -> tuple[str, int]:
    """The Java that Spark will run, JAVA_HOME before PATH, and its version."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if home and not java:
        raise Problem(f"JAVA_HOME is {home}, where there is no bin/java: set it to a Java 17 or 21, or unset it")
    if not java:
        raise Problem("no Java found: install Java 17 or 21 and put it on PATH, or set JAVA_HOME to it")
    version = _java_version(java)
    if version not in JAVAS:
        raise Problem(f"Java {version} found ({java}), but 17 or 21 is needed: install one and set JAVA_HOME to it")
    return java, version


def _java_version(java: str) -> int:
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise Problem(f"{java} -version does not work: install Java 17 or 21 and set JAVA_HOME to it") from error
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if not match:
        raise Problem(f"{java} does not say its version: install Java 17 or 21 and set JAVA_HOME to it")
    return int(match[1])


def port_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    with socket.socket() as probe:
        # Without this a port that was just given up would look taken for a minute.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def check_port(port: int, name: str) -> None:
    """A given port must be free; `name` is the variable that changes it."""
    if not port_free(port):
        remedy = f"stop what listens there (make down, if it is ours), or choose another: make {name}=auto up"
        raise Problem(f"port {port} is taken: {remedy}")
