"""Where a stack keeps its state: `.run`, or the folder that CLICKJOIN_HOME names."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from bootstrap import ROOT

from .processes import Server

# What belongs to another installation on the same machine, and would lead ours astray.
FOREIGN = ("AIRFLOW", "SPARK_", "PYSPARK_", "HADOOP_", "PYTHONPATH", "PYTHONHOME")


class Home:
    """The files of one stack; everything in it is readable by its owner alone."""

    def __init__(self, folder: Path | str | None = None) -> None:
        self.folder = Path(folder or os.environ.get("CLICKJOIN_HOME") or ROOT / ".run").absolute()
        self.connect_url = self.folder / "connect-url"
        self.passwords = self.folder / "airflow-password.json"
        self.logs = self.folder / "logs"
        self._state = self.folder / "stack.json"
        self._secrets = self.folder / "secrets.json"

    def make(self) -> None:
        """Create the folder, closed to others."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second start or stop waiting until this one is done."""
        self.make()
        with (self.folder / "lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def secret(self, name: str) -> str:
        """A generated secret that stays the same from start to start."""
        known: dict[str, str] = json.loads(self._secrets.read_text()) if self._secrets.exists() else {}
        if name not in known:
            known[name] = secrets.token_hex(32)
            write_private(self._secrets, json.dumps(known, indent=1))
        return known[name]

    def read(self) -> tuple[list[Server], dict[str, int]]:
        """The servers that were started last and the ports they were given."""
        if not self._state.exists():
            return [], {}
        state = json.loads(self._state.read_text())
        return [Server(**server) for server in state["servers"]], state["ports"]

    def write(self, servers: list[Server], ports: Mapping[str, int]) -> None:
        """Remember what was started, so that any later process can stop it."""
        write_private(self._state, json.dumps({"ports": dict(ports), "servers": [asdict(each) for each in servers]}))

    def forget(self) -> None:
        """Nothing runs any more."""
        self._state.unlink(missing_ok=True)
        self.connect_url.unlink(missing_ok=True)


def write_private(path: Path, text: str) -> None:
    """Write a file, whole or not at all, that only its owner may read."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600, exist_ok=False)
    partial.write_text(text)
    partial.replace(path)


def clean_environment() -> dict[str, str]:
    """This process's environment without other installations' settings, and with loopback off any proxy."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    for name in ("NO_PROXY", "no_proxy"):
        env[name] = ",".join(filter(None, [env.get(name), "localhost,127.0.0.1"]))
    return env
