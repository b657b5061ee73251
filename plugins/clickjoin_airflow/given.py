"""What spark-submit is given where others of this machine cannot read it: its settings, and an environment."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow.sdk.log import mask_secret

# As Spark redacts them (spark.redaction.regex).
_SECRET = re.compile(r"secret|password|passphrase|token|access[.]?key|api[.]?key", re.IGNORECASE)
# All else of a worker's environment stays with it: a task's may hold keys of Airflow, its database, other systems.
_PASSED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TZ|TMPDIR|VIRTUAL_ENV|PYTHONPATH|JAVA_HOME|JDK_JAVA_OPTIONS"
    r"|JAVA_TOOL_OPTIONS|(NO|HTTP|HTTPS)_PROXY|(no|http|https)_proxy|SSL_CERT_(FILE|DIR)|KRB5CCNAME|KRB5_CONFIG"
    # Where keys lie, which is no secret: raw logs are never read from there (clickjoin.sources.files.allowed_folders).
    r"|AIRFLOW_HOME|AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"
    r"|GX_ANALYTICS_ENABLED|(LC|LD|SPARK|PYSPARK|HADOOP|YARN|AWS|CLICKJOIN)_.*"
)
_KEPT = re.compile(r"SPARK_CONNECT.*|CLICKJOIN_SPARK_CONNECT|(SPARK|CLICKJOIN)_.*(SECRET|PASSWORD|TOKEN|KEY).*")
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


@contextmanager
def properties(conf: Mapping[str, Any]) -> Iterator[Path]:
    """A file of Spark's settings that its owner alone may read; gone at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="clickjoin-submit-") as folder:
        file = Path(folder) / "spark.properties"
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as handle:
            handle.writelines(_line(name, value) for name, value in conf.items())
        yield file


def _line(name: str, value: Any) -> str:
    """A line as java.util.Properties reads it. Airflow hides the value in all logs if it is a secret's."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if _SECRET.search(name):
        mask_secret(text)
    key = re.sub(r"([\\\s:=#!])", r"\\\1", name)
    escaped = "".join(_ESCAPES.get(sign, sign) for sign in text)
    return f"{key}={re.sub('^ ', chr(92) + ' ', escaped)}\n"


def environment(more: Iterable[str] = (), *, alone: bool) -> dict[str, str]:
    """This environment as far as a job needs it: what is known to be needed, and the variables named in `more`.

    `alone`: Spark works in one process of this machine, and listens on loopback.
    """
    wanted = set(more)
    env = {name: value for name, value in os.environ.items() if name in wanted or _is_passed(name)}
    env.setdefault("PYSPARK_PYTHON", sys.executable)
    env.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if alone:
        env["SPARK_LOCAL_IP"] = "127.0.0.1"
    return env


def _is_passed(name: str) -> bool:
    return bool(_PASSED.fullmatch(name)) and not _KEPT.fullmatch(name)
