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

from clickjoin.lake.log_load import now
from clickjoin.model.errors import ConfigError, LakeError

RENEWED, LEFT = 10.0, 40.0  # seconds: from one write to the next; since the last, where its holder is gone
TRUSTED = 1.0  # seconds for which what the store said last is believed
_TAKEN = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")
_NONE = ("404", "NoSuchKey", "NotFound")


class Held:
    """A lock that this process holds, as long as no other has taken it over."""

    def __init__(self, client: Any, bucket: str, key: str, what: str) -> None:
        self._client, self._bucket, self._key, self._what = client, bucket, key, what
        self._own, self._seen = uuid.uuid4().hex.encode(), 0.0
        self.tag = ""

    def take(self, sleep: Callable[[float], None]) -> bool:
        """Whether it could be had: it was free, or its holder is gone."""
        found = self._put(b"", IfNoneMatch="*") or self._after(sleep)
        self.tag, self._seen = found or "", now()
        return bool(found)

    def renew(self) -> None:
        """Write it again, so that nobody takes it for left behind."""
        new = self._put(str(time.monotonic_ns()).encode(), IfMatch=self.tag)
        self.tag = new or self._own_tag() or self.tag

    def require(self, *, at_once: bool = False) -> None:
        """Check that it is still held, as the store says; not oftener than every `TRUSTED` seconds unless `at_once`.

        A process that was paused for longer than `LEFT` goes on where it was, while another has begun the same or has
        ended it. So it is asked before each request that changes anything. Errors: LakeError.
        """
        asked = now()
        if not at_once and asked - self._seen < TRUSTED:
            return
        if self._own_tag() is None:
            place = f"s3://{self._bucket}/{self._key.rpartition('/')[0]}"
            raise LakeError(
                f"{place}: {self._what} has taken this one's place, which was not heard of for {LEFT:g} s",
                remedy="This one does nothing more. See what the other has left, and begin again if that is not wanted",
            )
        self._seen = asked

    def give_up(self) -> None:
        """Remove it, unless another holds it."""
        if self._tag() == self.tag:
            self._client.delete_object(Bucket=self._bucket, Key=self._key)

    def _after(self, sleep: Callable[[float], None]) -> str | None:
        """Take over a lock that stays as it is; by this process's own waiting, and by no clock of another."""
        seen = self._tag()
        if seen is None:
            return self._put(b"", IfNoneMatch="*")
        until = time.monotonic() + LEFT
        while time.monotonic() < until:
            sleep(RENEWED / 4)
            if self._tag() != seen:
                return self._put(b"", IfNoneMatch="*")  # it was renewed, and is refused; or given up
        return self._put(b"", IfMatch=seen)

    def _tag(self) -> str | None:
        try:
            return str(self._client.head_object(Bucket=self._bucket, Key=self._key)["ETag"])
        except ClientError as error:
            if error.response["Error"]["Code"] in _NONE:
                return None
            raise

    def _own_tag(self) -> str | None:
        """The lock's tag if this process wrote it, also where its PUT was carried out and the answer lost."""
        try:
            found = self._client.get_object(Bucket=self._bucket, Key=self._key)
        except ClientError as error:
            if error.response["Error"]["Code"] in _NONE:
                return None
            raise
        return str(found["ETag"]) if found["Body"].read().startswith(self._own) else None

    def _put(self, more: bytes, **condition: str) -> str | None:
        """Write it on a condition; its tag, or None where that does not hold."""
        try:
            body = self._own + more
            return str(self._client.put_object(Bucket=self._bucket, Key=self._key, Body=body, **condition)["ETag"])
        except ClientError as error:
            if error.response["Error"]["Code"] in (*_TAKEN, *_NONE):
                return None
            raise


@contextmanager
def locked(
    client: Any, bucket: str, key: str, what: str, sleep: Callable[[float], None] = time.sleep
) -> Iterator[Held]:
    """Hold the lock. Errors: ConfigError where a living process holds it."""
    held, ended = Held(client, bucket, key, what), threading.Event()
    if not held.take(sleep):
        raise ConfigError(
            f"s3://{bucket}/{key.rpartition('/')[0]}: {what} is under way", remedy="Wait until it has ended"
        )

    def renew() -> None:
        while not ended.wait(RENEWED):
            with suppress(BotoCoreError, ClientError):  # the next one may be answered
                held.renew()

    worker = threading.Thread(target=renew, daemon=True)
    worker.start()
    try:
        yield held
    finally:
        ended.set()
        worker.join()
        with suppress(BotoCoreError, ClientError):
            held.give_up()
