"""A Kafka broker with its controller in one process, from Maven's JARs: started on loopback, for tests and the demo."""

from __future__ import annotations

import base64
import secrets
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bootstrap import Problem, jars
from bootstrap.doctor import find_java
from bootstrap.once import exclusive

from . import ports

USER = "reader"
_JAVA = ("-Xmx512m", "-Xms128m", "-XX:TieredStopAtLevel=1")
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL",
    "inter.broker.listener.name": "PLAINTEXT",
    "num.partitions": "1",
    "sasl.enabled.mechanisms": "PLAIN",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # Retention and compaction do in seconds what takes minutes elsewhere.
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "500",
    "log.segment.delete.delay.ms": "1000",
}
_LOGGING = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %m (%c)%n%throwable
"""


class NoBroker(Problem):
    """Why there can be no Kafka broker on this machine: no Java, or no JARs."""


@contextmanager
def serving(folder: Path) -> Iterator[Broker]:
    """A broker that runs. Errors: NoBroker, Problem."""
    broker = Broker(folder)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


def make_topics(servers: str, names: Iterable[str], partitions: int) -> None:
    """Create topics, and wait until they are there. Errors: KafkaException."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})  # kept until the last answer: what it asks ends with it
    for made in admin.create_topics([NewTopic(name, partitions, 1) for name in names]).values():
        made.result(60)


class Broker:
    """A broker over a folder, which keeps its topics when it is killed and started again."""

    def __init__(self, folder: Path, pem: Path | None = None, **settings: str) -> None:
        """`pem`: its key and certificate, for clients that ask for TLS; `settings`: more lines, with `_` for `.`"""
        try:
            self._java, _ = find_java()
            with exclusive():
                jars.ensure(jars.KAFKA_JARS, jars.KAFKA_LOCK, jars.KAFKA_IVY)
        except Problem as error:
            raise NoBroker(str(error)) from error
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port, self._secure, self._tls, control = (ports.choose("auto", "KAFKA_PORT") for _ in range(4))
        self.password = secrets.token_urlsafe(24)
        here = f"PLAINTEXT://127.0.0.1:{self.port},SASL_PLAINTEXT://127.0.0.1:{self._secure}"
        more = {name.replace("_", "."): value for name, value in settings.items()}
        if pem:
            here += f",SSL://127.0.0.1:{self._tls}"
            more |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(pem)}
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        more["listener.name.sasl_plaintext.plain.sasl.jaas.config"] = f'{login} user_{USER}="{self.password}";'
        self._write(_SETTINGS | more | {
            "listeners": f"{here},CONTROLLER://127.0.0.1:{control}", "advertised.listeners": here,
            "controller.quorum.voters": f"1@127.0.0.1:{control}", "log.dirs": str(folder / "data"),
        })  # fmt: skip
        # One that begins with `-` would be taken for an option.
        cluster = "c" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
        self._run("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(folder / "server.properties"))

    @property
    def secure(self) -> str:
        """Where clients find it that have to say who they are: by SASL's PLAIN, as USER with its password."""
        return f"127.0.0.1:{self._secure}"

    @property
    def tls(self) -> str:
        """Where clients find it that want TLS, if it was given a certificate."""
        return f"127.0.0.1:{self._tls}"

    @property
    def servers(self) -> str:
        """Where clients find it."""
        return f"127.0.0.1:{self.port}"

    def _write(self, settings: dict[str, str]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self.folder / "server.properties").write_text(lines)
        (self.folder / "log4j2.properties").write_text(_LOGGING)

    def _line(self, *rest: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        return [self._java, *_JAVA, logging, "-cp", f"{jars.KAFKA_JARS}/*", *rest]

    def _run(self, *rest: str) -> None:
        done = subprocess.run(self._line(*rest), capture_output=True, text=True, check=False)
        if done.returncode:
            raise Problem(f"the broker's folder could not be prepared: {(done.stdout + done.stderr)[-2000:]}")

    def start(self) -> None:
        """Start it, and wait until it listens."""
        with (self.folder / "log").open("ab") as log:
            line = self._line("kafka.Kafka", str(self.folder / "server.properties"))
            self._process = process = subprocess.Popen(line, stdout=log, stderr=log)
        until = time.monotonic() + 60
        while not ports.answers(self.port):
            if process.poll() is not None or time.monotonic() > until:
                raise Problem(f"the broker did not start: {(self.folder / 'log').read_text()[-500:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """End it at once, as kill -9 does."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None
