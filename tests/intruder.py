"""Another program on this machine that talks to a Spark's ports: a Java process of its own, with Spark's own client."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil
from py4j.protocol import Py4JJavaError

LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
SECONDS = "15s"


def listening(pid: int) -> list[tuple[str, int]]:
    """Addresses and ports that a process listens on, its children's too."""
    found = []
    for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            found += [one.laddr for one in process.net_connections(kind="inet") if one.status == psutil.CONN_LISTEN]
    return sorted((address.ip, address.port) for address in found)


def children(*words: str) -> list[int]:
    """Numbers of this process's descendants whose command line has these words."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if set(words) <= set(process.cmdline()):
                found.append(process.pid)
    return found


class Intruder:
    """Asks a Spark's driver for what only its own parts may ask."""

    def __init__(self, gateway: Any) -> None:
        self.jvm = gateway.jvm

    def asks(self, port: int, secret: str = "") -> str:
        """What the driver behind this port says of its memory, or why it says nothing."""
        spark = self.jvm.org.apache.spark
        conf = spark.SparkConf(False).set("spark.authenticate", "true" if secret else "false")
        for name in ("spark.rpc.askTimeout", "spark.rpc.lookupTimeout", "spark.network.timeout"):
            conf.set(name, SECONDS)
        if secret:
            conf.set("spark.authenticate.secret", secret)
        auth_file = _object(spark.internal.config, "package").AUTH_SECRET_FILE()
        security = spark.SecurityManager(conf, self.jvm.scala.Option.empty(), auth_file)
        env = spark.rpc.RpcEnv.create("intruder", "127.0.0.1", 0, conf, security, True)
        try:
            driver = env.setupEndpointRef(spark.rpc.RpcAddress("127.0.0.1", port), "BlockManagerMaster")
            whatever = self.jvm.scala.reflect.ClassTag.Any()
            return str(driver.askSync(_object(spark.storage.BlockManagerMessages, "GetMemoryStatus"), whatever))
        except Py4JJavaError as error:
            return f"refused: {error.java_exception}"
        finally:
            env.shutdown()


def _object(package: Any, name: str) -> Any:
    """A Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


@contextmanager
def intruder() -> Iterator[Intruder]:
    """Its Java process runs until the end of the block; no Spark is started in it."""
    from pyspark.java_gateway import launch_gateway

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    gateway = launch_gateway()
    try:
        yield Intruder(gateway)
    finally:
        gateway.close()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)
