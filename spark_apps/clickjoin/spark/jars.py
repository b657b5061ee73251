"""Where Delta's JARs and the log store lie: in a checkout, beside a wheel, or in a folder that CLICKJOIN_JARS names."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from clickjoin.model.errors import ConfigError

LOG_STORE = "clickjoin-logstore.jar"
S3 = "s3"  # the folder below Delta's JARs that holds those of a lake on S3
# What a wheel brings along: the log store and its sources, and what names and locks Delta's JARs.
CARRIED = Path(__file__).with_name("carried")
_CHECKOUT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Jar:
    """One of Delta's JARs: its file's name and the SHA-256, in hex, of what it was tested with."""

    file: str
    sha256: str

    def is_in(self, folder: Path) -> bool:
        """Whether the folder holds it, and it is the one that was tested with."""
        try:
            return hashlib.sha256((folder / self.file).read_bytes()).hexdigest() == self.sha256
        except OSError:
            return False


def locked(s3: bool = False) -> list[Jar]:
    """Delta's JARs as they are locked; `s3`: those of a lake on S3 instead."""
    name = "jars-s3.lock" if s3 else "jars.lock"
    file = CARRIED / name if CARRIED.is_dir() else _CHECKOUT / "infra" / name
    lines = [line.split() for line in file.read_text().splitlines() if line and not line.startswith("#")]
    named = ((name.split(":"), digest) for name, digest in lines)
    return [Jar(f"{name[1]}-{name[2]}.jar", digest.removeprefix("sha256:")) for name, digest in named]


def folder() -> Path:
    """Where Delta's JARs are looked for."""
    own = Path(sys.prefix, "share/clickjoin/jars") if CARRIED.is_dir() else _CHECKOUT / ".jars"
    return Path(os.environ.get("CLICKJOIN_JARS") or own)


def log_store() -> Path:
    """The log store's JAR. Errors: ConfigError where set-up has not compiled it."""
    for place in (CARRIED, folder(), _CHECKOUT / ".jars"):
        if (place / LOG_STORE).is_file():
            return place / LOG_STORE
    raise ConfigError(f"{folder() / LOG_STORE}: is not there", remedy="Run `make setup`, which compiles it")


def jars(s3: bool = False) -> str:
    """All JARs that Spark needs, comma-separated; `s3`: those of a lake on S3 too.

    Errors: ConfigError where nobody has fetched them.
    """
    found = {path.name: path for path in folder().glob("*.jar")}
    if not found.keys() - {LOG_STORE}:
        way = "`clickjoin jars --fetch`" if CARRIED.is_dir() else "`make setup`"
        raise ConfigError(f"{folder()}: holds no JARs", remedy=f"Run {way}, or set CLICKJOIN_JARS to Delta's JARs")
    way = "`clickjoin jars --fetch --s3`" if CARRIED.is_dir() else "`make s3`"
    if s3 and not (more := {path.name: path for path in (folder() / S3).glob("*.jar")}):
        raise ConfigError(f"{folder() / S3}: holds no JARs", remedy=f"Run {way}, which fetches those of a lake on S3")
    return ",".join(str(path) for _, path in sorted((found | (more if s3 else {}) | {LOG_STORE: log_store()}).items()))
