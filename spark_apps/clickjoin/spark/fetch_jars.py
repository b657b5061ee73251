"""Fetching Delta's JARs for a wheel, by the Ivy that comes with PySpark; each must be the one that is locked."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from clickjoin.model.errors import ConfigError
from clickjoin.spark.jars import CARRIED, S3, folder, locked


def fetch(settings: Path | None = None, *, s3: bool = False) -> list[str]:
    """Make the folder of JARs hold all that are locked; returns those that it lacked. `settings`: an ivysettings.xml.

    `s3`: those of a lake on S3, in a folder of their own.

    Errors: ConfigError where they cannot be had, or one is another than was locked: that one is not kept.
    """
    if not CARRIED.is_dir():
        raise ConfigError("this is a checkout", remedy="Run `make setup`, which fetches them")
    target = folder() / S3 if s3 else folder()
    wanted = [jar for jar in locked(s3) if not jar.is_in(target)]
    if not wanted:
        return []
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target) as beside:
            named = CARRIED / ("ivy-s3.xml" if s3 else "ivy.xml")
            _retrieve(Path(beside), named, settings or CARRIED / "ivysettings.xml")
            for jar in wanted:
                if not jar.is_in(Path(beside)):
                    raise ConfigError(
                        f"{jar.file}: what was fetched is not what clickjoin was tested with ({jar.sha256[:12]}…)",
                        remedy="Look at the repository that it came from",
                    )
                Path(beside, jar.file).replace(target / jar.file)
    except OSError as error:
        raise ConfigError(
            f"{target}: cannot be written to ({error.strerror})", remedy="Set CLICKJOIN_JARS to a folder that can"
        ) from error
    return [jar.file for jar in wanted]


def _retrieve(target: Path, named: Path, settings: Path) -> None:
    """Have Ivy put all JARs that a file names into a folder."""
    options = [f"-Dclickjoin.ivy.cache={target / 'cache'}", *_proxy()]
    files = ["-settings", str(settings), "-ivy", str(named)]
    pattern = f"{target}{os.sep}[artifact]-[revision].[ext]"
    command = [_java(), *options, "-cp", f"{_spark()}{os.sep}*", "org.apache.ivy.Main", *files, "-retrieve", pattern]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = " | ".join((done.stdout + done.stderr).splitlines()[-4:])
        raise ConfigError(
            f"JARs could not be fetched: {last}",
            remedy="Check network and proxy; a repository of your own is named in a file for --settings",
        )


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    if not found:
        raise ConfigError("no Java found", remedy="Install Java 17 or 21, and put it on PATH or set JAVA_HOME to it")
    return found


def _spark() -> Path:
    spec = find_spec("pyspark")
    if spec is None or not spec.origin:
        raise ConfigError("Python package pyspark is not installed", remedy="Install it: clickjoin depends on it")
    return Path(spec.origin).parent / "jars"


def _proxy() -> list[str]:
    """Java does not read `https_proxy`, so it is passed as properties."""
    proxy = urlsplit(getproxies().get("https", ""))
    if not proxy.hostname:
        return []
    return [f"-Dhttps.proxyHost={proxy.hostname}", f"-Dhttps.proxyPort={proxy.port or 80}"]
