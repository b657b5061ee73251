"""Where a stack keeps its state: `.run`, or the folder that CLICKJOIN_HOME names."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from bootstrap import ROOT, Problem

from .processes import Server

# What belongs to another installation on the same machine, and would lead ours astray.
FOREIGN = ("AIRFLOW", "SPARK_", "PYSPARK_", "HADOOP_", "PYTHONPATH", "PYTHONHOME")
# In every folder that a stack was started in.
_MARK = ".clickjoin-stack"
_OTHER = "name a folder that is not there yet as CLICKJOIN_HOME"


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
        """Create the folder, closed to others. Errors: Problem for a folder that holds anything else."""
        if not (made := self._ours()):
            self._require_empty()
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if made:
                self.folder.chmod(0o700)
            (self.folder / _MARK).touch(mode=0o600)
        except OSError as error:
            raise Problem(f"{self.folder}: cannot be used ({error.strerror}); {_OTHER}") from error

    def _ours(self) -> bool:
        """Whether a stack has been in the folder; `.run` is shared by all that runs here."""
        return (self.folder / _MARK).is_file() or self.folder == ROOT / ".run"

    def _require_empty(self) -> None:
        """What someone keeps is not closed to others, nor mixed with passwords and keys."""
        try:
            held = next(self.folder.iterdir(), None)
            shared = stat.S_IMODE(self.folder.stat().st_mode) & 0o077
        except FileNotFoundError:
            return
        except OSError as error:
            raise Problem(f"{self.folder}: cannot be used ({error.strerror}); {_OTHER}") from error
        if held:
            raise Problem(f"{self.folder}: is no stack's folder, and holds {held.name}; {_OTHER}")
        if shared:
            raise Problem(f"{self.folder}: is open to other users; chmod 700 it, or {_OTHER}")

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
