"""Whether an object store can hold a lake: reachable, writable, and true to its word about conditional writes.

Two programs that commit one version exclude each other by `If-None-Match` alone. A store that accepts the header and
ignores it would lose commits without a word, so one object is written twice before anything else is.
"""

from __future__ import annotations

import os
import uuid
from contextlib import closing
from typing import Any

from clickjoin.model.errors import ConfigError
from clickjoin.model.store_faults import StoreFault, store_fault

_TAKEN = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")
_IGNORES = StoreFault(
    "the store ignores If-None-Match: two commits of one version would both be taken, and one would be lost",
    "Take a store that honours it, or name another `lake` in the pipeline's file",
)
_passed: set[tuple[str, str]] = set()


def fault_on_s3(root: str) -> StoreFault | None:
    """Why a lake at `s3://BUCKET/PREFIX` cannot be written to; None if it can. What passed is tested once a process."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    if (root, endpoint) in _passed:
        return None
    bucket, _, prefix = root.removeprefix("s3://").partition("/")
    try:
        with closing(client(endpoint)) as made:
            if not _excludes(made, bucket, f"{prefix}/_probe-{uuid.uuid4().hex}"):
                return _IGNORES
    except refusals() as error:
        known = store_fault(f"{type(error).__name__}: {error}")
        return known or StoreFault(str(error), "Look what the store's own log says of it")
    _passed.add((root, endpoint))
    return None


def refusals() -> tuple[type[Exception], ...]:
    """What boto3 raises where a store refuses, or is not there."""
    from botocore.exceptions import BotoCoreError, ClientError

    return BotoCoreError, ClientError


def _excludes(client: Any, bucket: str, key: str) -> bool:
    """Whether of two writers that each want to be the first of one object only one is."""
    from botocore.exceptions import ClientError

    client.put_object(Bucket=bucket, Key=key, Body=b"1", IfNoneMatch="*")
    try:
        client.put_object(Bucket=bucket, Key=key, Body=b"2", IfNoneMatch="*")
    except ClientError as error:
        if error.response["Error"]["Code"] in _TAKEN:
            return True
        raise
    finally:
        client.delete_object(Bucket=bucket, Key=key)
    return False


def client(endpoint: str, *, connections: int = 10, tries: int = 4) -> Any:
    """boto3's client for the server at an endpoint (empty: Amazon's), with what credentials boto3 finds.

    Errors: ConfigError where there is no boto3.
    """
    try:
        import boto3
    except ImportError as error:
        raise ConfigError("S3 is read by boto3, which is not here", remedy="pip install 'clickjoin[s3]'") from error
    from botocore.config import Config

    style = {"addressing_style": "path"} if endpoint else None
    retries = {"max_attempts": tries, "mode": "standard"}
    # Not the default session, which keeps the credentials that were there first.
    return boto3.session.Session().client(
        "s3",
        region_name=os.environ.get("AWS_REGION"),  # boto3 itself looks for AWS_DEFAULT_REGION alone
        config=Config(
            s3=style,
            connect_timeout=5,
            read_timeout=20,
            retries=retries,
            max_pool_connections=connections,
            signature_version="s3v4",
            response_checksum_validation="when_required",
        ),
    )
