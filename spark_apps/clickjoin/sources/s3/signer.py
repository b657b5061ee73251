"""Addresses that allow to read one object of a bucket, for a while: what goes to workers in place of credentials."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote


class Signer:
    """Signs for one bucket. A client's own `generate_presigned_url` works out each time where that is, in 2 ms.

    Errors: NoCredentialsError, and those of a role that is not granted any more.
    """

    def __init__(self, client: Any, bucket: str, seconds: int) -> None:
        import boto3

        # What comes before the key is the client's to say: it knows the endpoint and its style.
        some = client.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "k"}, ExpiresIn=seconds)
        self._base, self._seconds = some.partition("?")[0].removesuffix("k"), seconds
        self._region = client.meta.region_name or "us-east-1"
        self._credentials: Any = boto3.session.Session().get_credentials()

    def url(self, key: str) -> str:
        """The address of one object."""
        from botocore.auth import S3SigV4QueryAuth
        from botocore.awsrequest import AWSRequest

        now = self._credentials.get_frozen_credentials()  # renewed where they are a role's
        now = now._replace(token=now.token or None)  # an empty one would be signed, and refused
        asked = AWSRequest("GET", self._base + quote(key, safe="/~"))
        S3SigV4QueryAuth(now, "s3", self._region, self._seconds).add_auth(asked)
        return str(asked.url)
