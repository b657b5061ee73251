"""Delta's JARs in `.jars`, fetched by the Ivy that comes with Spark and checked against `jars.lock`."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from . import INFRA, JARS, VENV, Problem
from .doctor import find_java
from .once import fingerprint, stamp, stamped

LOCK, IVY = INFRA / "jars.lock", INFRA / "ivy.xml"
# What a lake on S3 needs besides. In a folder of its own: Spark is given these only where S3 is asked for.
S3_LOCK, S3_IVY, S3_JARS = INFRA / "jars-s3.lock", INFRA / "ivy-s3.xml", JARS / "s3"
# A broker for tests and the demo: Spark needs none of these.
KAFKA_LOCK, KAFKA_IVY, KAFKA_JARS = INFRA / "jars-kafka.lock", INFRA / "ivy-kafka.xml", JARS / "kafka"


@dataclass(frozen=True)
class Jar:
    """One line of the lock: `group:name:version sha256:…`."""

    coordinate: str
    sha256: str

    @property
    def file(self) -> str:
        """Its file name in `.jars`."""
        _, name, version = self.coordinate.split(":")
        return f"{name}-{version}.jar"


def read_lock(path: Path = LOCK) -> list[Jar]:
    """The JARs that the lock file names."""
    lines = [line.split() for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [Jar(coordinate, digest.removeprefix("sha256:")) for coordinate, digest in lines]


def ensure(folder: Path = JARS, lock: Path = LOCK, ivy: Path = IVY) -> None:
    """Make `folder` hold exactly the locked JARs; at once if it already does. `ivy`: what names them to Ivy."""
    wanted, jars = fingerprint(lock), read_lock(lock)
    if stamped(folder, wanted) and all((folder / jar.file).is_file() for jar in jars):
        return
    print(f"fetching {len(jars)} JARs into {os.path.relpath(folder)}", flush=True)
    folder.mkdir(exist_ok=True)
    if not all(sound(folder, jar) for jar in jars):
        retrieve(folder, ivy)
    verify(folder, jars)
    _remove_others(folder, jars)
    stamp(folder, wanted)


def sha256(path: Path) -> str:
    """The file's hash, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sound(folder: Path, jar: Jar) -> bool:
    """Whether the JAR is there and is the locked one."""
    path = folder / jar.file
    return path.is_file() and sha256(path) == jar.sha256


def verify(folder: Path, jars: list[Jar]) -> None:
    """Raise on the first JAR that is missing or not the locked one, and remove that one."""
    for jar in jars:
        path = folder / jar.file
        if not path.is_file():
            raise Problem(f"{jar.file} is locked but was not fetched: infra/ivy*.xml must name it; run make lock")
        if not sound(folder, jar):
            path.unlink()
            raise Problem(f"{jar.file} is not what is locked, and was removed: run make setup again")


def retrieve(folder: Path, ivy: Path = IVY) -> None:
    """Have Ivy put the JARs that a file names into `folder`."""
    cache = folder / ".ivy"
    answer = subprocess.run(_ivy(folder, cache, ivy), capture_output=True, text=True)
    if answer.returncode:
        print("\n".join((answer.stdout + answer.stderr).splitlines()[-20:]))
        raise Problem("the JARs could not be fetched: see above, check network and proxy, then make setup again")
    shutil.rmtree(cache)


def _ivy(folder: Path, cache: Path, ivy: Path) -> list[str]:
    java, _ = find_java()
    spark = next((VENV / "lib").glob("python*/site-packages/pyspark/jars"))
    pattern = f"{folder}{os.sep}[artifact]-[revision].[ext]"
    settings = ["-settings", str(INFRA / "ivysettings.xml"), "-ivy", str(ivy)]
    # Where a JAR is there but wrong, Ivy must not keep it.
    retrieval = ["-retrieve", pattern, "-overwriteMode", "always"]
    options = [f"-Dclickjoin.ivy.cache={cache}", *_java_proxy()]
    return [java, *options, "-cp", f"{spark}{os.sep}*", "org.apache.ivy.Main", *settings, *retrieval]


def _java_proxy() -> list[str]:
    """Java does not read `https_proxy`, so it is passed as properties."""
    proxy = urlsplit(getproxies().get("https", ""))
    if not proxy.hostname:
        return []
    return [f"-Dhttps.proxyHost={proxy.hostname}", f"-Dhttps.proxyPort={proxy.port or 80}"]


def _remove_others(folder: Path, jars: list[Jar]) -> None:
    # A JAR of an earlier lock would come onto Spark's class path beside the new one.
    for path in set(folder.glob("*.jar")) - {folder / jar.file for jar in jars}:
        path.unlink()
