"""The Delta log store in `infra/logstore`, compiled by the Janino that comes with Spark, so that a JRE is enough."""

from __future__ import annotations

import os
import subprocess
import tempfile
import zipfile
from pathlib import Path

from . import INFRA, JARS, VENV, Problem
from .doctor import find_java
from .once import fingerprint

SOURCES = INFRA / "logstore"
JAR = "clickjoin-logstore.jar"
_COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"
_STAMP = "META-INF/clickjoin"  # what the JAR was compiled from
_EPOCH = (1980, 1, 1, 0, 0, 0)


def ensure(folder: Path = JARS, sources: Path = SOURCES) -> None:
    """Make `folder` hold the compiled log store; at once if it already does. Needs the other JARs there."""
    files = sorted(sources.rglob("*.java"))
    wanted = fingerprint(*files, *(path.name for path in sorted(folder.glob("delta-storage*.jar"))))
    if _stamp_of(folder / JAR) == wanted:
        return
    print("compiling the log store", flush=True)
    with tempfile.TemporaryDirectory(dir=folder) as classes:
        _compile(files, Path(classes), folder)
        beside = Path(classes) / JAR
        _pack(Path(classes), beside, wanted)
        beside.replace(folder / JAR)


def _stamp_of(jar: Path) -> str:
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.read(_STAMP).decode()
    except (OSError, KeyError, zipfile.BadZipFile):
        return ""


def _compile(files: list[Path], classes: Path, folder: Path) -> None:
    java, _ = find_java()
    spark = next((VENV / "lib").glob("python*/site-packages/pyspark/jars"))
    path = [*spark.glob("hadoop-client-api*.jar"), *spark.glob("jackson-*.jar"), *folder.glob("delta-storage*.jar")]
    command = [java, "-cp", f"{spark}{os.sep}*", _COMPILER, "-d", str(classes), "-encoding", "UTF-8"]
    command += ["-classpath", os.pathsep.join(map(str, path)), *map(str, files)]
    answer = subprocess.run(command, capture_output=True, text=True)
    made = {found.stem for found in classes.rglob("*.class")}
    if answer.returncode or {file.stem for file in files} - made:
        print("\n".join((answer.stdout + answer.stderr).splitlines()[-20:]))
        raise Problem("the log store in infra/logstore could not be compiled: see above")


def _pack(classes: Path, jar: Path, wanted: str) -> None:
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF", _EPOCH), "Manifest-Version: 1.0\n")
        for file in sorted(classes.rglob("*.class")):
            archive.writestr(zipfile.ZipInfo(file.relative_to(classes).as_posix(), _EPOCH), file.read_bytes())
        archive.writestr(zipfile.ZipInfo(_STAMP, _EPOCH), wanted)
