"""A Spark session: in this process, or on a Spark Connect server; the same settings either way."""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import socket
import socketserver
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickjoin.config.umask import in_force
from clickjoin.model.errors import ConfigError, ServerLost
from clickjoin.spark import java, object_store
from clickjoin.spark.jars import CARRIED, jars
from clickjoin.spark.master import require_answer
from clickjoin.spark.ship import ship_kernel

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What results depend on (time zone), and what small batches need (few partitions, a small log state). A server's own
# defaults hold for the rest.
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.optimizer.windowGroupLimitThreshold": "-1",  # ids are hardly ever double: it sorts all for nothing
    "spark.databricks.delta.merge.materializeSource": "none",  # the source is persisted, and insert-only reads it once
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # has statistics in the file itself, INT96 has none
    "spark.sql.parquet.compression.codec": "zstd",  # records as text: half of what snappy leaves, in the same time
    "parquet.block.size": str(1 << 20),  # row groups of some 4,000 records: who looks for few of them reads few
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",  # hundreds of files are not worth a task each
    "spark.databricks.delta.stats.collect.using.tableSchema": "true",
}
# Delta's own log store for local files renames over a commit that came first; a server must be started with these.
LOG_STORES = {"spark.delta.logStore.file.impl": "clickjoin.storage.LocalLogStore"}
# Of a Spark that is one process: loopback alone, and a secret that it makes for itself at each start, so that no other
# user of the machine can give it orders. With another master both are the cluster's, and the user's to set.
ALONE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.authenticate": "true",
}
UMASK = "spark.hadoop.fs.permissions.umask-mode"
DELTA = {
    **LOG_STORES,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_IN_PROCESS = {
    **DELTA,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "3g",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
}
# Pauses of 0.05 to 3.2 s: enough for a hiccup. A server that stays away for longer has lost the session as well.
_TRIES = 4
_WORTH_COMPILING = 50_000
_COMPILES = "_clickjoin_compiles"  # what a session was last set to
_AT_ONCE = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}


def connect(url: str) -> SparkSession:
    """A session on a Spark Connect server.

    Errors: ConfigError for a URL that can only hang, ServerLost where nothing answers.
    """
    host, port = _address(url)
    if "token=" in url and "use_ssl" not in url and host != "localhost":
        raise ConfigError(
            "a token needs TLS or the host name `localhost`", remedy="Add use_ssl=true, or use sc://localhost"
        )
    try:
        socket.create_connection((host, port), timeout=10).close()
        os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # pyspark.sql.functions looks here for which kind to build
        from pyspark.sql.connect.session import SparkSession as Remote

        session = Remote.builder.remote(url).create()
        be_patient(session, _TRIES)
        return configured(session)  # type: ignore[arg-type]
    except Exception as error:
        raise ServerLost(
            f"sc://{host}:{port}: no Spark Connect server answers ({type(error).__name__})",
            remedy="Start it (`make up`), or check the address and token",
        ) from error


def another(session: SparkSession) -> SparkSession:
    """One more session where this one is, for work side by side: what one of them sets is no business of the other.

    On a Connect server no clone: checkpoints of a cloned session cannot be read there.
    """
    if not is_remote(session):
        return configured(session.newSession())
    made: Any = type(session).builder.channelBuilder(session.client._builder).create()  # type: ignore[attr-defined]
    be_patient(made, _TRIES)
    return configured(made)


def make_active(session: SparkSession | None) -> None:
    """Have what this thread does go to a session of a Connect server: PySpark looks for checkpoints in the active one.

    Each thread has its own; where none is set it is the session that was made last. None: there is no session yet.
    """
    if session is not None and is_remote(session):
        type(session)._active_session.session = session  # type: ignore[attr-defined]


def is_remote(session: SparkSession) -> bool:
    """Whether a session is on a Spark Connect server."""
    return ".connect." in type(session).__module__


def release(session: SparkSession) -> None:
    """Free what a session from `another` holds; one in this process shares its Spark with others, and stays."""
    if is_remote(session):
        session.stop()


def interrupt(session: SparkSession) -> None:
    """End what a session from `another` has under way, and free it; nothing is waited for, and no error is raised."""
    if is_remote(session):
        be_patient(session, 0)
        with suppress(Exception):
            session.interruptAll()
        with suppress(Exception):
            session.stop()


def be_patient(session: Any, tries: int) -> None:
    """How often a call that finds no server is tried again; PySpark's own answer is ten minutes long."""
    client = session.client
    client.set_retry_policies([type(policy)(max_retries=tries) for policy in client.get_retry_policies()])


def tune_codegen(session: SparkSession | None, events: int) -> None:
    """Set a session up for a batch of this size.

    A small batch is evaluated as it stands: to generate, compile and warm up code for it costs more than to run it. In
    a loop of batches of 300 clicks and 3,000 queries this took a fifth off each. None: there is no session yet.
    """
    if session is not None:
        compile_code(session, events > _WORTH_COMPILING)


def compile_code(session: SparkSession, worth_it: bool) -> None:
    """Have Spark generate and compile code for what is run next, or evaluate it as it stands."""
    if getattr(session, _COMPILES, None) is worth_it:  # on a server, each setting is a request
        return
    session.conf.set("spark.sql.codegen.wholeStage", "true" if worth_it else "false")
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if worth_it else "NO_CODEGEN")
    setattr(session, _COMPILES, worth_it)


@contextmanager
def with_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Give a session settings; then they are as before."""
    before = {key: str(session.conf.get(key)) for key in settings}
    for key, value in settings.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        with suppress(Exception):  # of a session that is gone what ended it is the error
            for key, value in before.items():
                session.conf.set(key, value)


@contextmanager
def planned_at_once(session: SparkSession | None, events: int) -> Iterator[None]:
    """Have Spark plan a small batch as a whole and in one partition, not stage by stage; then as before.

    Nothing else of the session is run so: in one partition a large table takes as long as it is large.
    """
    if session is None or events > _WORTH_COMPILING:
        yield
    else:
        with with_settings(session, _AT_ONCE):
            yield


def _address(url: str) -> tuple[str, int]:
    found = re.match(r"sc://([^:/;]+)(?::(\d+))?(?:/|$)", url)
    if not found:
        raise ConfigError(f"{url.split(';')[0]!r} is no Spark Connect address", remedy="Write sc://HOST:PORT/;token=…")
    return found.group(1), int(found.group(2) or 15002)


def in_process(cores: str = "*", memory: str | None = None, *, s3: bool = False, master: str = "") -> SparkSession:
    """A session in this process, on all cores unless configured otherwise; `s3`: for a lake on S3.

    `master`: a cluster that it is the driver of. What that needs besides is said in Spark's own spark-defaults.conf.

    Errors: ConfigError where its JARs have not been fetched, ServerLost where no master answers.
    """
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = master or f"local[{cores}]"
    if is_alone(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # or it warns of a host name that means this machine
    _hush()
    require_answer(master)
    builder = SparkSession.builder.master(master).appName("clickjoin").config("spark.jars", jars(s3))
    more = (ALONE if is_alone(master) else {}) | (object_store.settings(os.environ) if s3 else {})
    for key, value in {**_IN_PROCESS, **SETTINGS, **_private(), **more}.items():
        if key.startswith("spark."):  # the others are a session's alone
            builder = builder.config(key, value)
    builder = builder.config("spark.sql.warehouse.dir", _scratch())
    if memory:
        builder = builder.config("spark.driver.memory", memory)
    with java.starting():
        session = builder.getOrCreate()
    return configured(session)


def submitted(name: str, *, s3: bool = False) -> SparkSession:
    """The session of a program that spark-submit runs; what it was given there goes before what is set here."""
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    conf = SparkConf()
    more = object_store.settings(os.environ) if s3 else {}
    for key, value in (DELTA | more | _private() | (ALONE if is_alone(conf.get("spark.master", "")) else {})).items():
        conf.setIfMissing(key, value)
    return configured(SparkSession.builder.config(conf=conf).appName(name).getOrCreate())


def _private() -> dict[str, str]:
    """Have Hadoop make files and folders as this process does: by itself it sets modes that let all read them."""
    return {UMASK: f"{in_force():03o}"}


def is_alone(master: str | None) -> bool:
    """Whether Spark with this master is one process, on this machine."""
    return re.fullmatch(r"local(\[[^\]]*\])?", master or "") is not None


def _hush() -> None:
    """Keep quiet about a Java process that is gone: what is called next raises, and that is said in one message."""
    from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer

    def handle_error(server: Any, request: Any, address: Any) -> None:
        if not isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            socketserver.BaseServer.handle_error(server, request, address)

    logging.getLogger("py4j").addHandler(logging.NullHandler())
    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        server.handle_error = handle_error  # type: ignore[method-assign, assignment]


def _scratch() -> str:
    """A folder for what Spark wants to keep of no use here; else it makes `spark-warehouse` wherever it is started."""
    folder = tempfile.mkdtemp(prefix="clickjoin-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def configured(session: SparkSession) -> SparkSession:
    """Give a session the settings that clickjoin relies on. Errors: as of require_log_stores."""
    require_log_stores(session)
    # Delta's own classes for the conflicts that it raises, which PySpark knows once they are imported.
    import_module("delta.connect.exceptions" if is_remote(session) else "delta.exceptions.captured")
    ship_kernel()
    for key, value in SETTINGS.items():
        session.conf.set(key, value)
    return session


def require_log_stores(session: SparkSession, wanted: Mapping[str, str] = LOG_STORES) -> None:
    """Check that a session commits by log stores that never overwrite. Errors: ConfigError, with what to set."""
    general = _server_setting(session, "spark.delta.logStore.class")
    wrong = [name for name, value in wanted.items() if general or _server_setting(session, name) != value]
    if wrong:
        settings = " ".join(f"--conf {name}={wanted[name]}" for name in wrong)
        made = "`clickjoin jars` says where it is" if CARRIED.is_dir() else "made by `make setup`"
        without = " and without spark.delta.logStore.class" if general else ""
        raise ConfigError(
            f"this Spark's commits can overwrite those of others: {', '.join(wrong)} is not set when it starts",
            remedy=f"Start it with {settings}{without}, and clickjoin-logstore.jar ({made}) in --jars",
        )


def _server_setting(session: SparkSession, name: str) -> str | None:
    """A setting as Spark was started with it; on a Connect server, as the session has it."""
    if is_remote(session):
        return session.conf.get(name, None)
    found: str | None = session.sparkContext.getConf().get(name)
    return found
