"""Flink's own Python environment and its JAR, as locked beside this file; the product needs neither."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from bootstrap import INFRA, ROOT, Problem
from bootstrap import VENV as PRODUCT
from bootstrap.doctor import find_java
from bootstrap.jars import Jar, read_lock, verify
from bootstrap.once import exclusive, fingerprint, stamp, stamped

HERE = Path(__file__).parent
LOCK, JAR_LOCK = HERE / "requirements.lock", HERE / "jars.lock"
VENV = ROOT / ".venv-flink"
JARS = VENV / "jars"
PYTHON = VENV / "bin/python"
# What Flink's Parquet writer asks of Hadoop, in the versions that Spark brings; it logs through the last one.
HADOOP = ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar", "jcl-over-slf4j-*.jar")


def ensure() -> None:
    """Make `.venv-flink` what the lock files say; at once if it is already so. Errors: Problem, in one line."""
    wanted = fingerprint(LOCK, JAR_LOCK, str(VENV))
    with exclusive():
        if stamped(VENV, wanted):
            return
        print("making .venv-flink", flush=True)
        _packages()
        _jars(read_lock(JAR_LOCK))
        stamp(VENV, wanted)


def class_path() -> str:
    """What Flink's Java needs beside what its wheel brings."""
    found = [str(JARS / jar.file) for jar in read_lock(JAR_LOCK)]
    for pattern in HADOOP:
        found += [str(path) for path in _spark().glob(pattern)]
    return ":".join(found)


def _packages() -> None:
    base = getattr(sys, "_base_executable", sys.executable)
    uv = [sys.executable, "-m", "uv", "pip", "sync", "--quiet", "--require-hashes"]
    for command in ([base, "-m", "venv", "--clear", str(VENV)], [*uv, "--python", str(PYTHON), str(LOCK)]):
        if subprocess.run(command).returncode:
            raise Problem("Flink's Python packages could not be installed: see above, check network and proxy")


def _jars(wanted: list[Jar]) -> None:
    JARS.mkdir(exist_ok=True)
    answer = subprocess.run(_ivy(), capture_output=True, text=True)
    if answer.returncode:
        print("\n".join((answer.stdout + answer.stderr).splitlines()[-20:]))
        raise Problem("Flink's JARs could not be fetched: see above, check network and proxy")
    shutil.rmtree(JARS / ".ivy")
    verify(JARS, wanted)


def _ivy() -> list[str]:
    """Have the Ivy that comes with Spark fetch what ivy.xml names."""
    proxy = urlsplit(getproxies().get("https", ""))
    options = [f"-Dhttps.proxyHost={proxy.hostname}", f"-Dhttps.proxyPort={proxy.port or 80}"] if proxy.hostname else []
    options.append(f"-Dclickjoin.ivy.cache={JARS / '.ivy'}")
    what = ["-settings", str(INFRA / "ivysettings.xml"), "-ivy", str(HERE / "ivy.xml")]
    to = ["-retrieve", f"{JARS}/[artifact]-[revision].[ext]", "-overwriteMode", "always"]
    return [find_java()[0], *options, "-cp", f"{_spark()}/*", "org.apache.ivy.Main", *what, *to]


def _spark() -> Path:
    return next((PRODUCT / "lib").glob("python*/site-packages/pyspark/jars"))
