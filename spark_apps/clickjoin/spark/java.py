"""The Java that Spark runs on: looked for before Spark starts, as what that says of it is a page of frames."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clickjoin.model.errors import ConfigError

_REMEDY = "Install Java 17 or 21, and set JAVA_HOME to it or put it on the PATH"


@contextmanager
def starting() -> Iterator[str]:
    """A JVM is started within; the path of its Java. Errors: ConfigError where there is none, or it ends at once."""
    from pyspark.errors import PySparkRuntimeError

    java = _java()
    try:
        yield java
    except PySparkRuntimeError as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        raise ConfigError(
            f"{java}: Spark's JVM ended before it had started; what it said is above",
            remedy=f"{_REMEDY}; look at JDK_JAVA_OPTIONS, and whether there is memory for it",
        ) from error


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin/java") if home else shutil.which("java")
    if not java:
        raise ConfigError("there is no Java on the PATH, which Spark runs on", remedy=_REMEDY)
    if not os.access(java, os.X_OK):
        raise ConfigError(f"JAVA_HOME is {home}, and there is no program {java}", remedy=_REMEDY)
    return java
