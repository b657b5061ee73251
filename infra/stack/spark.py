"""The Spark Connect server."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

from bootstrap import INFRA, JARS, ROOT
from bootstrap.doctor import find_java
from bootstrap.jars import S3_JARS
from clickjoin.spark import object_store
from clickjoin.spark.session import ALONE, UMASK, is_alone

from . import processes
from .home import Home, write_private
from .ports import answers

NAME = "spark"
DEFAULTS = INFRA / "spark/spark-defaults.conf"
_THEIRS = ("SPARK_CONF_DIR", "SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME", "PYSPARK_PYTHON")
MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"


def master_of(env: Mapping[str, str]) -> str:
    """Where the server's work is done: `CLICKJOIN_SPARK_MASTER`, or in its own process."""
    return env.get("CLICKJOIN_SPARK_MASTER") or "local[*]"


def environment(env: Mapping[str, str], home: Home) -> dict[str, str]:
    """What the server and its Python workers need to know.

    On a cluster Spark's own configuration folder and address, and the Python of the executors, are the user's to say.
    """
    own = {} if is_alone(master_of(env)) else {name: os.environ[name] for name in _THEIRS if name in os.environ}
    return {
        **env,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": home.secret("spark_connect"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT / "spark_apps"),
        **own,
    }


def command(home: Home, port: int, env: Mapping[str, str]) -> list[str]:
    """How the server is started."""
    find_java()
    for_s3 = sorted(S3_JARS.glob("*.jar"))  # there once `make s3` has fetched them
    is_cluster = not is_alone(master_of(env))
    settings = (object_store.settings(env) if for_s3 else {}) | {
        "spark.connect.grpc.binding.port": port,
        "spark.local.dir": home.folder / "spark/tmp",
        "spark.sql.warehouse.dir": home.folder / "spark/warehouse",
        UMASK: f"{processes.umask(env):03o}",
    }
    return [
        str(Path(pyspark.__file__).parent / "bin/spark-submit"),
        *("--class", MAIN, "--master", master_of(env), "--name", "clickjoin"),
        *("--driver-memory", env.get("CLICKJOIN_DRIVER_MEMORY", "4g")),
        *("--properties-file", str(_for_cluster(home) if is_cluster else DEFAULTS)),
        *(["--load-spark-defaults"] if is_cluster else []),
        *("--jars", ",".join(map(str, [*sorted(JARS.glob("*.jar")), *for_s3]))),
        *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
        "spark-internal",
    ]


def _for_cluster(home: Home) -> Path:
    """The settings without those of a Spark that is one process: the driver's address, and its secret for itself."""
    kept = [line for line in DEFAULTS.read_text().splitlines() if not line.startswith(tuple(ALONE))]
    file = home.folder / "spark/cluster.conf"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_private(file, "\n".join(kept) + "\n")
    return file


def start(home: Home, port: int, env: Mapping[str, str]) -> processes.Server:
    """Start the server; it is up when `healthy` says so."""
    started = command(home, port, env)
    return processes.start(NAME, started, environment(env, home), home.folder / "spark", home.logs / "spark.log")


def healthy(port: int) -> bool:
    """The server listens only once its session is up."""
    return answers(port)


def publish(home: Home, port: int) -> None:
    """Write where clients connect.

    The host must read `localhost`: with a token and any other host, PySpark asks for TLS and retries indefinitely.
    """
    url = f"sc://localhost:{port}/;token={home.secret('spark_connect')}"
    write_private(home.connect_url, url)
