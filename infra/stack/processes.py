"""Start servers, know them again later, and stop them with all that they started."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bootstrap import Problem

BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Server:
    """A process that was started here; `born` tells it from a later process with its pid."""

    name: str
    pid: int
    born: str
    folder: str
    log: str

    def alive(self) -> bool:
        """Whether this very process still runs."""
        return born(self.pid) == self.born


def born(pid: int) -> str | None:
    """What no other process with this pid, before or after, has; None if it is dead."""
    with suppress(OSError, psutil.Error):
        if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return None
        if not BOOT.exists():
            return str(psutil.Process(pid).create_time())
        # Ticks since boot: psutil's own time of creation moves with the clock.
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        return f"{BOOT.read_text().strip()}/{ticks}"
    return None


def start(name: str, command: list[str], env: Mapping[str, str], folder: Path, log: Path, **more: Any) -> Server:
    """Start a server in a session of its own, in its folder. `more`: as Popen takes it."""
    folder.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists():
        log.replace(log.with_name(f"{log.name}.1"))
    with log.open("wb") as output:
        how: dict[str, Any] = {
            "cwd": folder,
            "stdin": subprocess.DEVNULL,
            "stdout": output,
            "stderr": subprocess.STDOUT,
        } | more
        process = subprocess.Popen(command, env=env, start_new_session=True, umask=umask(env), **how)
    _children[process.pid] = process
    return Server(name, process.pid, born(process.pid) or "", str(folder), str(log))


def umask(env: Mapping[str, str]) -> int:
    """As clickjoin's own programs take it: what they write holds raw records."""
    text = env.get("CLICKJOIN_UMASK") or "077"
    if not re.fullmatch(r"0?[0-7]{3}", text):
        raise Problem(f"CLICKJOIN_UMASK is {text!r}: write three octal digits, such as 077, 027 or 022")
    return int(text, 8)


# Children of this process stay zombies, and their Popen complains, until waited for.
_children: dict[int, subprocess.Popen[bytes]] = {}


def stop(servers: Iterable[Server], patience: float = 3, ask: int = signal.SIGTERM) -> None:
    """Stop the servers and all that they started: ask the servers, then everyone, then ask no more."""
    servers = list(servers)
    leaders = {psutil.Process(server.pid) for server in servers if server.alive()}
    family = {member for server in servers for member in _family(server)}
    _signal(leaders, ask)
    _wait(servers, family, patience)
    for number in (signal.SIGTERM, signal.SIGKILL):
        family |= {member for server in servers for member in _family(server)}
        _signal(family, number)
        _wait(servers, family, patience)
    for child in [_children.pop(server.pid) for server in servers if server.pid in _children]:
        # It may have died after it was last asked: one that is never waited for stays a zombie.
        with suppress(subprocess.TimeoutExpired):
            child.wait(patience)


def _family(server: Server) -> set[psutil.Process]:
    """The server, its descendants, and who is left in its session."""
    if server.alive():
        leader = psutil.Process(server.pid)
        with suppress(psutil.Error):
            return {leader, *leader.children(recursive=True), *_session(server.pid)}
    elif born(server.pid) is None:
        # The leader is gone, and by now its number may name another's session: ours works in our folder.
        return {member for member in _session(server.pid) if _works_in(member, server.folder)}
    return set()


def _session(leader: int) -> list[psutil.Process]:
    found = []
    for pid in psutil.pids():
        with suppress(OSError, psutil.Error):
            if os.getsid(pid) == leader:
                found.append(psutil.Process(pid))
    return found


def _works_in(process: psutil.Process, folder: str) -> bool:
    try:
        return Path(process.cwd()).is_relative_to(folder)
    except (OSError, psutil.Error):
        return False


def _signal(targets: Iterable[psutil.Process], number: int) -> None:
    for target in targets:
        # psutil compares the time of creation again before it sends.
        with suppress(psutil.NoSuchProcess):
            if target.pid != os.getpid():
                target.send_signal(number)


def _wait(servers: list[Server], family: set[psutil.Process], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for child in [_children[server.pid] for server in servers if server.pid in _children]:
            child.poll()
        if not any(_runs(member) for member in family):
            return
        time.sleep(0.05)


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.pid != os.getpid() and bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False
