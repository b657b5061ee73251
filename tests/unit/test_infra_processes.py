"""Servers are known by more than their pid, and are stopped with all that they started."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from stack import processes
from stack.processes import Server

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
# A server whose child ignores requests to stop, in a process group of its own, as Spark's Python workers are.
STUBBORN = """
import subprocess, sys, time
child = [
    "import os, signal, time",
    "os.setpgid(0, 0)",
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "print(os.getpid(), flush=True)",
    "time.sleep(60)",
]
subprocess.Popen([sys.executable, "-c", "; ".join(child)])
time.sleep(60)
"""
# A test run that starts a server under watch and is then killed.
KILLED = """
import os, sys
from stack import processes, watch
from stack.home import Home

home = Home(sys.argv[1])
home.make()
env = dict(os.environ)
server = processes.start("server", ["sleep", "60"], env, home.folder, home.logs / "server.log")
home.write([watch.start(home, env), server], {})
print(server.pid, server.born, flush=True)
os.kill(os.getpid(), 9)
"""


def launch(folder: Path, command: list[str] = SLEEP) -> Server:
    return processes.start("server", command, dict(os.environ), folder, folder / "logs/server.log")


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def first_line(log: Path) -> str:
    deadline = time.monotonic() + 20
    while "\n" not in log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return log.read_text().strip()


@pytest.fixture
def bystander():
    """A process that was not started by a stack."""
    with subprocess.Popen(SLEEP) as process:
        yield process
        process.kill()


def test_stop_ends_a_server(tmp_path):
    server = launch(tmp_path)
    assert server.alive()
    processes.stop([server])
    assert not server.alive()


def test_stop_twice_is_as_good_as_once(tmp_path):
    server = launch(tmp_path)
    processes.stop([server])
    processes.stop([server])


def test_reused_pid_is_not_touched(tmp_path, bystander):
    # The record of a server that died, whose number went to another process since.
    record = Server("server", bystander.pid, "an earlier birth", str(tmp_path), str(tmp_path / "log"))
    assert not record.alive()
    processes.stop([record])
    assert bystander.poll() is None


def test_session_of_another_with_the_same_number_is_not_touched(tmp_path):
    other = launch(tmp_path / "other", [sys.executable, "-c", STUBBORN])
    child = psutil.Process(int(first_line(Path(other.log))))
    # As above, but the other has died too, and left a child in its session.
    psutil.Process(other.pid).kill()
    processes._children.pop(other.pid).wait()
    processes.stop([replace(other, born="an earlier birth", folder=str(tmp_path / "ours"))])
    assert not gone(child)
    processes.stop([other], patience=0.2)
    assert gone(child)


def test_children_that_ignore_requests_are_stopped_too(tmp_path):
    server = launch(tmp_path, [sys.executable, "-c", STUBBORN])
    child = psutil.Process(int(first_line(Path(server.log))))
    processes.stop([server], patience=0.2)
    assert gone(child)


def test_log_of_the_run_before_is_kept(tmp_path):
    for text in ("first", "second"):
        server = launch(tmp_path, [sys.executable, "-c", f"print('{text}')"])
        assert first_line(Path(server.log)) == text
        processes.stop([server])
    assert (tmp_path / "logs/server.log.1").read_text() == "first\n"


def test_stack_of_a_killed_process_is_stopped(tmp_path):
    """The watch does it: no one else is left."""
    command = [sys.executable, "-c", KILLED, str(tmp_path / "home")]
    pid, born = subprocess.run(command, capture_output=True, text=True).stdout.split()
    deadline = time.monotonic() + 20
    while processes.born(int(pid)) == born:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_one_that_dies_after_it_was_last_asked_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = launch(tmp_path)
    child = processes._children[server.pid]
    monkeypatch.setattr(processes, "_wait", lambda *_: None)
    processes.stop([server])
    assert child.returncode is not None
