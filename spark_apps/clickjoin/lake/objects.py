"""Single objects below a place on S3, a request each: what a look at a log, and a commit to it, are made of.

delta-rs and Arrow ask twice or more for the same: for a size before the bytes, for a listing before a name.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from clickjoin.model.errors import ConfigError
from clickjoin.model.places import Store, store_of

_AT_ONCE, _TRIES = 40, 6  # connections, more than lake/side_by_side.py has workers; requests until one is given up
_CONFLICTS = 5  # answers that another conditional write of the same object is under way
_made: dict[tuple[object, ...], Any] = {}
_making = threading.Lock()


def client(store: Store) -> Any:
    """A client of a store, with the credentials of now; kept, and used by all threads of a process."""
    names = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    known = (os.getpid(), store, *(os.environ.get(name) for name in names))
    with _making:
        if known not in _made:
            _made[known] = make_client(store)
        return _made[known]


def make_client(store: Store, *, connections: int = _AT_ONCE, tries: int = _TRIES) -> Any:
    """A client of its own, with what credentials boto3 finds. Errors: ConfigError where there is no boto3."""
    try:
        import boto3
    except ImportError as error:
        raise ConfigError("S3 is read by boto3, which is not here", remedy="pip install 'clickjoin[s3]'") from error
    from botocore.config import Config

    config = Config(
        s3={"addressing_style": "path" if store.path_style else "virtual"} if store.endpoint else None,
        connect_timeout=5,
        read_timeout=20,
        retries={"max_attempts": tries, "mode": "standard"},
        max_pool_connections=connections,
        signature_version="s3v4",
        response_checksum_validation="when_required",
    )
    # Not the default session, which keeps the credentials that were there first.
    return boto3.session.Session().client("s3", endpoint_url=store.endpoint, region_name=store.region, config=config)


class Objects:
    """The objects below s3://BUCKET/PREFIX; keys are relative to it. Errors: OSError, with what the store said."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        self._prefix = f"{prefix.rstrip('/')}/"

    def get(self, key: str) -> bytes | None:
        """What an object holds; None where there is none."""
        with self._said(key, missing=("NoSuchKey", "404")) as there:
            answer = self._client().get_object(Bucket=self._bucket, Key=self._prefix + key)
            there.append(answer["Body"].read())
        return there[0] if there else None

    def create(self, key: str, data: bytes) -> bool:
        """Write an object; False where one is there. That one may be this very one: the client asks again by itself."""
        for attempt in range(_CONFLICTS):
            with self._said(key, missing=("PreconditionFailed", "412", "ConditionalRequestConflict", "409")) as done:
                self._client().put_object(Bucket=self._bucket, Key=self._prefix + key, Body=data, IfNoneMatch="*")
                done.append(b"")
            if done or self.get(key) is not None:
                break
            time.sleep(0.02 * 2**attempt)  # whoever was writing it has not, and nobody else may have
        else:
            raise OSError(f"S3 {self._uri}/{key}: {_CONFLICTS} conflicts in a row (ServiceUnavailable)")
        return bool(done)

    def put(self, key: str, data: bytes) -> None:
        """Write an object, over the one that is there."""
        with self._said(key):
            self._client().put_object(Bucket=self._bucket, Key=self._prefix + key, Body=data)

    def listed(self, folder: str, after: str = "") -> list[str]:
        """Keys below a folder, sorted, relative to it; those that sort after one."""
        start, found = f"{self._prefix}{folder}/", list[str]()
        with self._said(folder):
            pages = self._client().get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._bucket, Prefix=start, StartAfter=start + after):
                found += [item["Key"].removeprefix(start) for item in page.get("Contents", ())]
        return found

    def _client(self) -> Any:
        return client(store_of(self._uri))

    @contextmanager
    def _said(self, key: str, missing: tuple[str, ...] = ()) -> Iterator[list[bytes]]:
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

        try:
            yield []
        except ClientError as error:
            if error.response["Error"]["Code"] not in missing:
                raise OSError(f"S3 {self._uri}/{key}: {error}") from error
        except (HTTPClientError, BotoCoreError) as error:
            raise OSError(f"S3 {self._uri}/{key}: {type(error).__name__}: {error}") from error
