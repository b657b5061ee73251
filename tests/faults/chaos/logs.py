"""Where the logs of a chaos run lie: files in a folder that grow, or objects in a bucket, of which each is new."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Protocol

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from stack.gateway import Gateway

STREAMS = ("queries", "clicks")
_TRIES = 240  # half a second apart: the server is killed now and then


class Logs(Protocol):
    """`place`: what the pipeline's file names; `disk`: the folder in which the oracle sees every line."""

    place: str
    disk: Path

    def write(self, stream: str, lines: list[str]) -> None:
        """Add lines to a stream's logs, each once."""
        ...


class GrowingFiles:
    """Four files a stream, each appended to for a minute."""

    def __init__(self, folder: Path) -> None:
        self.disk = folder / "logs"
        self.place = str(self.disk)
        for stream in STREAMS:
            (self.disk / stream).mkdir(parents=True)

    def write(self, stream: str, lines: list[str]) -> None:
        """Append."""
        with (self.disk / stream / f"{int(time.time()) // 60 % 4}.jsonl").open("a") as log:
            log.write("".join(f"{line}\n" for line in lines))


class Objects:
    """An object for each call. The server is asked without the proxy, until it has taken the object."""

    def __init__(self, server: Gateway, bucket: str) -> None:
        self.place, self.disk = f"s3://{bucket}/logs", server.folder / "data" / bucket / "logs"
        self._bucket, self._numbers = bucket, itertools.count(1)
        known = server.environment()
        self._s3 = boto3.client(
            "s3",
            endpoint_url=known["AWS_ENDPOINT_URL"],
            aws_access_key_id=known["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=known["AWS_SECRET_ACCESS_KEY"],
            region_name=known["AWS_REGION"],
            config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
        )

    def write(self, stream: str, lines: list[str]) -> None:
        """Put one object. Errors: AssertionError if the server stays away."""
        if not lines:
            return
        key = f"logs/{stream}/{next(self._numbers):08d}.jsonl"
        body = "".join(f"{line}\n" for line in lines).encode()
        for _ in range(_TRIES):
            try:
                self._s3.put_object(Bucket=self._bucket, Key=key, Body=body)
                return
            except (BotoCoreError, ClientError):
                time.sleep(0.5)
        raise AssertionError(f"{key}: the store took it in none of {_TRIES} tries")
