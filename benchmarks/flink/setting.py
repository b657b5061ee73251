"""Python environments of Flink and its JARs, as locked in files beside; the product needs none of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from bootstrap import INFRA, ROOT, Problem
from bootstrap import VENV as PRODUCT
from bootstrap.doctor import find_java
from bootstrap.jars import Jar, read_lock, verify
from bootstrap.once import exclusive, fingerprint, stamp, stamped

# What Flink's Parquet writer asks of Hadoop, in the versions that Spark brings; it logs through the last one.
HADOOP = ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar", "jcl-over-slf4j-*.jar")


@dataclass(frozen=True)
class Environment:
    """A Python environment with Flink's wheels and JARs, as `requirements.lock`, `ivy.xml` and `jars.lock` say.

    `locks`: the folder that these lie in; `read_by_flink`: which of the JARs Flink's Java needs; `more`: Spark's JARs
    that it needs besides.
    """

    name: str
    locks: Path
    read_by_flink: str = "*.jar"
    more: tuple[str, ...] = ()

    @property
    def venv(self) -> Path:
        """Where it lies."""
        return ROOT / self.name

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.venv / "bin/python"

    @property
    def jars(self) -> Path:
        """The folder of its JARs."""
        return self.venv / "jars"

    def ensure(self) -> None:
        """Make it what the lock files say; at once if it is already so. Errors: Problem, in one line."""
        lock, jar_lock = self.locks / "requirements.lock", self.locks / "jars.lock"
        wanted = fingerprint(lock, jar_lock, str(self.venv))
        with exclusive():
            if stamped(self.venv, wanted):
                return
            print(f"making {self.name}", flush=True)
            self._packages(lock)
            self._fetch(read_lock(jar_lock))
            stamp(self.venv, wanted)

    def class_path(self) -> str:
        """What Flink's Java needs beside what its wheel brings."""
        found = sorted(self.jars.glob(self.read_by_flink))
        return ":".join(map(str, [*found, *(path for pattern in self.more for path in _spark().glob(pattern))]))

    def _packages(self, lock: Path) -> None:
        base = getattr(sys, "_base_executable", sys.executable)
        uv = [sys.executable, "-m", "uv", "pip", "sync", "--quiet", "--require-hashes"]
        for command in (
            [base, "-m", "venv", "--clear", str(self.venv)],
            [*uv, "--python", str(self.python), str(lock)],
        ):
            if subprocess.run(command).returncode:
                raise Problem("Flink's Python packages could not be installed: see above, check network and proxy")

    def _fetch(self, wanted: list[Jar]) -> None:
        self.jars.mkdir(exist_ok=True)
        answer = subprocess.run(self._ivy(), capture_output=True, text=True)
        if answer.returncode:
            print("\n".join((answer.stdout + answer.stderr).splitlines()[-20:]))
            raise Problem("Flink's JARs could not be fetched: see above, check network and proxy")
        shutil.rmtree(self.jars / ".ivy")
        verify(self.jars, wanted)

    def _ivy(self) -> list[str]:
        """Have the Ivy that comes with Spark fetch what ivy.xml names."""
        proxy = urlsplit(getproxies().get("https", ""))
        options = (
            [f"-Dhttps.proxyHost={proxy.hostname}", f"-Dhttps.proxyPort={proxy.port or 80}"] if proxy.hostname else []
        )
        options.append(f"-Dclickjoin.ivy.cache={self.jars / '.ivy'}")
        what = ["-settings", str(INFRA / "ivysettings.xml"), "-ivy", str(self.locks / "ivy.xml")]
        to = ["-retrieve", f"{self.jars}/[artifact]-[revision].[ext]", "-overwriteMode", "always"]
        return [find_java()[0], *options, "-cp", f"{_spark()}/*", "org.apache.ivy.Main", *what, *to]


def _spark() -> Path:
    return next((PRODUCT / "lib").glob("python*/site-packages/pyspark/jars"))


FLINK_2_3 = Environment(".venv-flink", Path(__file__).parent, more=HADOOP)
