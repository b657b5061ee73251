"""A Docker engine: the one that answers, or one of our own, started as root and taken away again.

The images of an engine of our own stay below the cache (CACHE/docker) for the next run. All else of it goes: its
containers, networks, mounts, and what it wrote into the packet filter and the kernel's settings.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "clickjoin")
_FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
_FILTERS = ("iptables", "ip6tables")
_TABLES = ("filter", "nat")
_PATIENCE = 120.0


class NoEngine(Exception):
    """There is none, and none can be made: the message says why."""


def answering(host: str | None = None) -> bool:
    """Whether an engine answers, at an address or where the environment says."""
    env = os.environ | ({"DOCKER_HOST": host} if host else {})
    try:
        return not subprocess.run(["docker", "version"], env=env, capture_output=True, timeout=60).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False


@contextmanager
def engine() -> Iterator[str | None]:
    """The address of an engine; None where docker's own settings name it. Errors: NoEngine."""
    if answering():
        yield None
        return
    missing = [one for one in ("docker", "dockerd", "debootstrap", "iptables", "go") if not shutil.which(one)]
    if os.geteuid() or missing:
        reason = f"{', '.join(missing)} not there" if missing else "not root"
        raise NoEngine(f"no Docker engine answers, and none can be made: {reason}")
    data = CACHE / "docker/data"
    data.mkdir(parents=True, exist_ok=True)
    with _alone(data.parent), _as_before(), tempfile.TemporaryDirectory(prefix="clickjoin-docker-") as folder:
        daemon = _start(data, Path(folder))
        try:
            host = f"unix://{folder}/docker.sock"
            _wait(daemon, host, Path(folder) / "log")
            yield host
        finally:
            _stop(daemon, data, Path(folder))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Two engines on the same data would spoil it. Errors: NoEngine."""
    with (folder / "lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise NoEngine(f"another run's engine uses {folder}: wait for its end") from error
        yield


def _start(data: Path, folder: Path) -> subprocess.Popen[bytes]:
    # Networks are Compose's own, and images are built on the machine's: there need be no bridge of the engine's.
    command = ["dockerd", "--data-root", str(data), "--exec-root", str(folder / "exec"), "--bridge", "none"]
    command += ["--host", f"unix://{folder}/docker.sock", "--pidfile", str(folder / "pid")]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )


def _wait(daemon: subprocess.Popen[bytes], host: str, log: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while not answering(host):
        if daemon.poll() is not None or time.monotonic() > until:
            last = " | ".join(log.read_text(errors="replace").splitlines()[-3:])
            raise NoEngine(f"no Docker engine answers, and dockerd does not start: {last}")
        time.sleep(1)


def _stop(daemon: subprocess.Popen[bytes], *folders: Path) -> None:
    """End it with its containerd, and unmount what is left."""
    daemon.terminate()
    try:
        daemon.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
    for place in reversed(mounts(*folders)):
        subprocess.run(["umount", "--lazy", place], check=True)


def mounts(*folders: Path) -> list[str]:
    """What is mounted below."""
    places = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [place for place in places if any(Path(place).is_relative_to(folder) for folder in folders)]


def rules() -> dict[tuple[str, str], str]:
    """The packet filter, by program and table, as its own program restores it; without the hours and counts in it."""
    found = {}
    for program in _FILTERS:
        for table in _TABLES:
            saved = _run(f"{program}-save", "--table", table)
            lines = [line for line in saved.splitlines() if not line.startswith("#")]
            kept = [line.rpartition(" [")[0] if line.startswith(":") else line for line in lines]
            if kept:
                found[program, table] = "\n".join(kept) + "\n"
    return found


@contextmanager
def _as_before() -> Iterator[None]:
    """Leave packet filter and forwarding as they were: dockerd adds its rules and takes none of them away."""
    before, forward = rules(), _FORWARD.read_text()
    try:
        yield
    finally:
        for (program, table), text in before.items():
            if rules()[program, table] != text:
                subprocess.run([f"{program}-restore", "--table", table], input=text, text=True, check=True)
        if _FORWARD.read_text() != forward:
            _FORWARD.write_text(forward)


def _run(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout
    except FileNotFoundError:
        return ""
