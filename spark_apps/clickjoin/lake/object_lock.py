"""A lock on S3: an object that only one process can be the first to write, and that it writes again while it lives.

Of a process that was killed it is left behind. Who finds it as it was for longer than a living holder leaves it so
takes it over, by a PUT on the condition that it is still the one that was seen: of two who try, one does.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from clickjoin.model.errors import ConfigError

RENEWED, LEFT = 10.0, 40.0  # seconds: from one write to the next; since the last, where its holder is gone
_TAKEN = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")
_NONE = ("404", "NoSuchKey", "NotFound")


@contextmanager
def locked(
    client: Any, bucket: str, key: str, what: str, sleep: Callable[[float], None] = time.sleep
) -> Iterator[None]:
    """Hold the lock. Errors: ConfigError where a living process holds it."""
    place, own = f"s3://{bucket}/{key.rpartition('/')[0]}", uuid.uuid4().hex.encode()
    tag = _first(client, bucket, key, own) or _after(client, bucket, key, own, sleep)
    if tag is None:
        raise ConfigError(f"{place}: {what} is under way", remedy="Wait until it has ended")
    ended, held = threading.Event(), [tag]

    def renew() -> None:
        while not ended.wait(RENEWED):
            with suppress(BotoCoreError, ClientError):  # the next one may be answered
                new = _put(client, bucket, key, own + str(time.monotonic_ns()).encode(), IfMatch=held[0])
                held[0] = new or _own_tag(client, bucket, key, own) or held[0]

    worker = threading.Thread(target=renew, daemon=True)
    worker.start()
    try:
        yield
    finally:
        ended.set()
        worker.join()
        with suppress(BotoCoreError, ClientError):
            if client.head_object(Bucket=bucket, Key=key)["ETag"] == held[0]:
                client.delete_object(Bucket=bucket, Key=key)


def _first(client: Any, bucket: str, key: str, own: bytes) -> str | None:
    return _put(client, bucket, key, own, IfNoneMatch="*")


def _after(client: Any, bucket: str, key: str, own: bytes, sleep: Callable[[float], None]) -> str | None:
    """Take over a lock that stays as it is; by this process's own waiting, and by no clock of another."""
    seen = _tag(client, bucket, key)
    if seen is None:
        return _first(client, bucket, key, own)
    until = time.monotonic() + LEFT
    while time.monotonic() < until:
        sleep(RENEWED / 4)
        if _tag(client, bucket, key) != seen:
            return _first(client, bucket, key, own)  # it was renewed, and is refused; or given up
    return _put(client, bucket, key, own, IfMatch=seen)


def _tag(client: Any, bucket: str, key: str) -> str | None:
    try:
        return str(client.head_object(Bucket=bucket, Key=key)["ETag"])
    except ClientError as error:
        if error.response["Error"]["Code"] in _NONE:
            return None
        raise


def _own_tag(client: Any, bucket: str, key: str, own: bytes) -> str | None:
    """The lock's tag if this process wrote it: its PUT was carried out, and the answer lost."""
    found = client.get_object(Bucket=bucket, Key=key)
    return str(found["ETag"]) if found["Body"].read().startswith(own) else None


def _put(client: Any, bucket: str, key: str, data: bytes, **condition: str) -> str | None:
    """Write it on a condition; its tag, or None where that does not hold."""
    try:
        return str(client.put_object(Bucket=bucket, Key=key, Body=data, **condition)["ETag"])
    except ClientError as error:
        if error.response["Error"]["Code"] in (*_TAKEN, *_NONE):
            return None
        raise
