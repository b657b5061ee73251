"""Fluss's servers on loopback: ZooKeeper, a coordinator and a tablet server, which holds the tables."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.flink.setting import Environment
from benchmarks.flink.warm import free_port
from benchmarks.live import Servers
from bootstrap.doctor import find_java

FLUSS = Environment(".venv-fluss", Path(__file__).parent, read_by_flink="fluss-flink-*.jar")
_OPENED = [f"--add-opens=java.base/java.{part}=ALL-UNNAMED" for part in ("nio", "lang", "util")]
_STARTS_WITHIN = 60.0  # seconds


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Start them, with their data in a folder; gives their address to clients. Errors: SystemExit."""
    keeper, coordinator, tablet = free_port(), free_port(), free_port()
    conf = folder / "conf"
    conf.mkdir(parents=True)
    (conf / "zk.properties").write_text(
        f"dataDir={folder}/zk\nclientPort={keeper}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
    )
    (conf / "server.yaml").write_text(
        f"zookeeper.address: 127.0.0.1:{keeper}\nzookeeper.path.root: /fluss\nremote.data.dir: file://{folder}/remote\n"
        "default.replication.factor: 1\n"
    )
    own, zookeeper = ["--configDir", str(conf), "-D"], "shaded.zookeeper3.org.apache.zookeeper.server"
    store = ["-D", "tablet-server.id=0", "-D", f"data.dir={folder}/data"]
    with Servers(folder / "home") as servers:
        for port, heap, (program, *arguments) in (
            (keeper, "128m", [f"{zookeeper}.ZooKeeperServerMain", f"{conf}/zk.properties"]),
            (coordinator, "256m", ["server.coordinator.CoordinatorServer", *own, _listeners(coordinator)]),
            (tablet, "1g", ["server.tablet.TabletServer", *own, _listeners(tablet), *store]),
        ):
            command = [find_java()[0], f"-Xmx{heap}", *_OPENED, "-cp", _class_path(), f"org.apache.fluss.{program}"]
            name = program.rpartition(".")[2].lower()
            servers.start(name, [*command, *arguments])
            _await(port, servers.home.logs / f"{name}.log")
        yield f"127.0.0.1:{coordinator}"


def _listeners(port: int) -> str:
    return f"bind.listeners=FLUSS://127.0.0.1:{port}"


def _class_path() -> str:
    logs = FLUSS.venv.glob("lib/python*/site-packages/pyflink/lib/log4j-*.jar")
    return ":".join(map(str, [*FLUSS.jars.glob("fluss-server-*.jar"), *logs]))


def _await(port: int, log: Path) -> None:
    end = time.monotonic() + _STARTS_WITHIN
    while not _listens(port):
        if time.monotonic() > end:
            raise SystemExit(f"it did not start: see {log}")
        time.sleep(0.2)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return not probe.connect_ex(("127.0.0.1", port))
