"""Whether an object store can hold a lake: reachable, writable, and true to its word about conditional writes.

Two programs that commit one version exclude each other by `If-None-Match` alone. A store that accepts the header and
ignores it would lose commits without a word, so one object is written twice before anything else is.
"""

from __future__ import annotations

import uuid
from typing import Any

from clickjoin.lake.objects import client
from clickjoin.model.places import Store, store_of
from clickjoin.model.store_faults import StoreFault, store_fault

_TAKEN = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")
_IGNORES = StoreFault(
    "the store ignores If-None-Match: two commits of one version would both be taken, and one would be lost",
    "Take a store that honours it, or name another `lake` in the pipeline's file",
)
_passed: set[tuple[str, Store]] = set()


def fault_on_s3(root: str) -> StoreFault | None:
    """Why a lake at `s3://BUCKET/PREFIX` cannot be written to; None if it can. What passed is tested once a process."""
    store = store_of(root)
    if (root, store) in _passed:
        return None
    bucket, _, prefix = root.removeprefix("s3://").partition("/")
    try:
        if not _excludes(client(store), bucket, f"{prefix}/_probe-{uuid.uuid4().hex}"):
            return _IGNORES
    except refusals() as error:
        known = store_fault(f"{type(error).__name__}: {error}")
        return known or StoreFault(str(error), "Look what the store's own log says of it")
    _passed.add((root, store))
    return None


def refusals() -> tuple[type[Exception], ...]:
    """What boto3 raises where a store refuses, or is not there."""
    from botocore.exceptions import BotoCoreError, ClientError

    return BotoCoreError, ClientError


def _excludes(asked: Any, bucket: str, key: str) -> bool:
    """Whether of two writers that each want to be the first of one object only one is."""
    try:
        _is_first(asked, bucket, key)  # if not: its own request whose answer was lost, and was sent again
        return not _is_first(asked, bucket, key)
    finally:
        asked.delete_object(Bucket=bucket, Key=key)


def _is_first(asked: Any, bucket: str, key: str) -> bool:
    from botocore.exceptions import ClientError

    try:
        asked.put_object(Bucket=bucket, Key=key, Body=b"1", IfNoneMatch="*")
    except ClientError as error:
        if error.response["Error"]["Code"] in _TAKEN:
            return False
        raise
    return True
