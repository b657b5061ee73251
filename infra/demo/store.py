"""Where the demo's lake and logs lie: in its folder, or on an S3 server of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import boto3

from stack.gateway import serving

_BUCKET, _LOGS = "lake", "logs"


class Store(NamedTuple):
    """The lake as the pipeline's file names it, and the folder that its files are seen in from outside.

    `logs`: where globs of logs begin; empty for the demo's own folder. `put`: writes an object there; None: files.
    `servers`: the broker whose topics the logs are; empty where they are files or objects.
    """

    lake: str
    folder: Path
    logs: str = ""
    put: Callable[[str, bytes], object] | None = None
    servers: str = ""

    @property
    def server(self) -> tuple[str, str] | None:
        """What ends with the demo, so that no command can look at it after, and the page that is about it."""
        if self.servers:
            return "broker", "docs/kafka.md"
        return ("S3 server", "docs/s3.md") if self.put else None


@contextmanager
def lake_store(kind: str, folder: Path) -> Iterator[Store]:
    """A place for a lake. Errors: Problem where an S3 server was asked for, and there can be none."""
    if kind == "local":
        yield Store(str(folder / "lake"), folder / "lake")
        return
    with serving(folder / "s3", _BUCKET) as server:
        os.environ.update(server.environment())
        server.bucket(_LOGS)
        s3 = boto3.session.Session().client("s3", endpoint_url=f"http://127.0.0.1:{server.port}")

        def put(key: str, data: bytes) -> None:
            s3.put_object(Bucket=_LOGS, Key=key, Body=data)

        yield Store(f"s3://{_BUCKET}", server.folder / "data" / _BUCKET, f"s3://{_LOGS}", put)
