"""versitygw, an S3 server over a folder: built once, outside the checkout, and started on loopback."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bootstrap import Problem, jars
from bootstrap.once import exclusive

from . import built, ports

VERSION = "v1.8.0"
_PACKAGE = "github.com/versity/versitygw/cmd/versitygw"


class NoGateway(Problem):
    """Why there is no S3 server on this machine."""


def build() -> Path:
    """The program, built by Go where it has not been yet. Errors: NoGateway."""
    try:
        return built.program("versitygw", _PACKAGE, VERSION)
    except Problem as error:
        raise NoGateway(str(error)) from error


@contextmanager
def serving(folder: Path, bucket: str) -> Iterator[Gateway]:
    """A server with one bucket, and the JARs that Spark needs for it. Errors: Problem where there can be none."""
    with exclusive():
        jars.ensure(jars.S3_JARS, jars.S3_LOCK, jars.S3_IVY)
    server = Gateway(folder)
    server.bucket(bucket)
    server.start()
    try:
        yield server
    finally:
        server.kill()


class Gateway:
    """A server over a folder, with credentials of its own; `users`: and more of them, as they come and go."""

    def __init__(self, folder: Path, *, users: bool = False) -> None:
        self.port = ports.choose("auto", "S3_PORT")
        self.folder, self._program = folder, build()
        self._key, self._secret = f"key{secrets.token_hex(4)}", secrets.token_urlsafe(24)
        self._process: subprocess.Popen[bytes] | None = None
        self._more = ["--iam-dir", str(folder / "users"), "--iam-cache-disable"] if users else []
        for part in ("data", *(["users"] if users else [])):
            (folder / part).mkdir(parents=True, exist_ok=True)

    def bucket(self, name: str) -> None:
        """Make a bucket."""
        (self.folder / "data" / name).mkdir(exist_ok=True)

    def know(self, other: Gateway) -> None:
        """Take the credentials of another server."""
        self._key, self._secret = other._key, other._secret

    def environment(self, port: int | None = None) -> dict[str, str]:
        """What programs need to reach it; `port`: by a proxy."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port or self.port}", "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": self._key, "AWS_SECRET_ACCESS_KEY": self._secret,
            "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
        }  # fmt: skip

    def start(self) -> None:
        """Start it, and wait until it listens."""
        env: Mapping[str, str] = os.environ | {"ROOT_ACCESS_KEY": self._key, "ROOT_SECRET_KEY": self._secret}
        line = [str(self._program), "--port", f"127.0.0.1:{self.port}", "--quiet", *self._more]
        line += ["posix", str(self.folder / "data")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(line, env=env, stdout=log, stderr=log)
        until = time.monotonic() + 30
        while not ports.answers(self.port):
            if self._process.poll() is not None or time.monotonic() > until:
                raise NoGateway(f"it did not start: {(self.folder / 'log').read_text()[-500:]}")
            time.sleep(0.05)

    def add_user(self, key: str, secret: str) -> None:
        """Let someone else do everything too."""
        self._admin("create-user", "--access", key, "--secret", secret, "--role", "admin")

    def remove_user(self, key: str) -> None:
        """Know someone no more."""
        self._admin("delete-user", "--access", key)

    def _admin(self, *command: str) -> None:
        root = ("--access", self._key, "--secret", self._secret, "--endpoint-url", f"http://127.0.0.1:{self.port}")
        subprocess.run([str(self._program), "admin", *root, *command], check=True, capture_output=True)

    def kill(self) -> None:
        """End it at once."""
        if self._process:
            self._process.kill()
            self._process.wait()

    def wait(self) -> None:
        """Until it ends."""
        assert self._process
        self._process.wait()


def main(folder: str, bucket: str) -> int:
    """Serve a folder until Ctrl-C; prints what a shell needs to reach it. Its credentials are new each time."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with serving(Path(folder).resolve(), bucket) as server:
            exports = "".join(f"export {name}={value}\n" for name, value in server.environment().items())
            print(f"serving s3://{bucket} until Ctrl-C. In the shell where you use it:\n\n{exports}", flush=True)
            server.wait()
    except Problem as problem:
        print(f"clickjoin: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; the files stay")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
