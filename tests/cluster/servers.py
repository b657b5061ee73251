"""A standalone master and workers on loopback, each worker in a mount namespace of its own, and Connect on them."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pyspark

from stack.ports import answers, choose

SPARK = Path(pyspark.__file__).parent
_FOREIGN = ("AWS_", "SPARK_", "PYSPARK_", "PYTHON", "CLICKJOIN_")


class NoCluster(Exception):
    """Why there is no such cluster on this machine."""


class Cluster:
    """`hidden`: folders that the workers see empty; `environment`: what they have beside this process's own.

    `secret`: of `spark.authenticate`, in a configuration folder that only this user can read.
    """

    def __init__(self, folder: Path, hidden: Sequence[Path], python: Path, environment: Mapping[str, str]) -> None:
        _require_namespaces()
        self.folder, self._hidden, self._python = folder, hidden, python
        self._more, self._processes = dict(environment), dict[str, subprocess.Popen[bytes]]()
        self._made = 0
        self.port = choose("auto", "MASTER_PORT")
        self.master = f"spark://127.0.0.1:{self.port}"
        self.conf = folder / "conf"
        self.conf.mkdir(parents=True, mode=0o700)
        lines = {
            "spark.authenticate": "true", "spark.authenticate.secret": secrets.token_hex(16),
            "spark.executor.memory": "700m", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
        }  # fmt: skip
        file = self.conf / "spark-defaults.conf"
        file.touch(mode=0o600)
        file.write_text("".join(f"{name} {value}\n" for name, value in lines.items()))

    def driver(self, python: Path | None = None) -> dict[str, str]:
        """The environment of a driver."""
        return {
            "SPARK_CONF_DIR": str(self.conf), "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": str(python or self._python),
        }  # fmt: skip

    def start(self, workers: int = 2) -> None:
        """Start it, and wait until all workers are there."""
        master = "org.apache.spark.deploy.master.Master --host 127.0.0.1 --webui-port 0"
        self._run("master", f"{_class(master)} --port {self.port}", {})
        self._await(lambda: answers(self.port))
        for _ in range(workers):
            self.worker()
        self._await(lambda: self.log("master").count("Registering worker") == workers)

    @property
    def workers(self) -> list[str]:
        """The workers that were started, and were not killed."""
        return [name for name in self._processes if name != "master"]

    def replace_workers(self) -> None:
        """Start as many as there are, then kill those: whatever executors held is lost."""
        old = self.workers
        for _ in old:
            self.worker()
        for name in old:
            self.kill(name)

    def kill_an_executor(self) -> None:
        """End one of the processes that workers have started for a driver, at once; its worker starts another."""
        for name in self.workers:
            for child in psutil.Process(self._processes[name].pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    if "CoarseGrainedExecutorBackend" in " ".join(child.cmdline()):
                        child.kill()
                        return
        raise AssertionError("no executor runs")

    def worker(self) -> None:
        """Start a worker that sees nothing of what is hidden."""
        self._made += 1
        name = f"worker{self._made}"
        work = self.folder / "work" / name
        worker = "org.apache.spark.deploy.worker.Worker --host 127.0.0.1 --cores 1 --memory 900m --webui-port 0"
        mounts = [f"mount -t tmpfs none {shlex.quote(str(place))}" for place in self._hidden]
        line = f"exec {_class(worker)} --work-dir {shlex.quote(str(work))} {self.master}"
        script = " && ".join(["mount --make-rprivate /", *mounts, line])
        self._run(name, f"exec unshare --mount bash -c {shlex.quote(script)}", self._more)

    def kill(self, name: str) -> None:
        """End one with all that it started, at once."""
        process = self._processes.pop(name)
        family = [process.pid, *(child.pid for child in psutil.Process(process.pid).children(recursive=True))]
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        """End all."""
        for name in list(self._processes):
            with suppress(psutil.NoSuchProcess):
                self.kill(name)
        shutil.rmtree(self.folder / "work", ignore_errors=True)

    def log(self, name: str) -> str:
        """What a process has said."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def _run(self, name: str, line: str, more: Mapping[str, str]) -> None:
        env = {key: value for key, value in os.environ.items() if not key.startswith(_FOREIGN)}
        env |= {
            "SPARK_HOME": str(SPARK), "SPARK_CONF_DIR": str(self.conf), "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "128m", "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        }  # fmt: skip
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                ["bash", "-c", line], env=env | more, cwd="/", stdout=log, stderr=log, start_new_session=True
            )

    def _await(self, what: object) -> None:
        until = time.monotonic() + 90
        while not what():  # type: ignore[operator]
            ended = [name for name, process in self._processes.items() if process.poll() is not None]
            if ended or time.monotonic() > until:
                said = {name: self.log(name)[-1500:] for name in self._processes}
                raise AssertionError(f"the cluster did not start ({ended}): {said}")
            time.sleep(0.1)


def _require_namespaces() -> None:
    if not shutil.which("unshare"):
        raise NoCluster("no unshare on this machine (Linux's util-linux)")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        raise NoCluster("this user may not make mount namespaces (unshare --mount)")


def _class(main: str) -> str:
    return f"{shlex.quote(str(SPARK / 'bin/spark-class'))} {main}"
