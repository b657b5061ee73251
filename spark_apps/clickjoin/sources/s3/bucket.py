"""What is asked of a bucket: lists, heads, and addresses that others may read an object at. Refusals come by name."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from clickjoin.kernel.remote_file import RemoteFile, Signed
from clickjoin.lake.objects import make_client
from clickjoin.lake.probe import refusals
from clickjoin.model.errors import ConfigError, SourceMoved, StoreBusy
from clickjoin.model.places import S3, store_of
from clickjoin.model.store_faults import store_fault

SIGNED_SECONDS = 12 * 3600  # a task that is not done by then fails, and goes again with new addresses
_ABSENT = ("404", "NoSuchKey", "NotFound")


class StoredObject(NamedTuple):
    """An object as a list showed it; `written`: seconds since 1970, by the store's clock."""

    key: str
    etag: str
    size: int
    written: int


class Page(NamedTuple):
    """One answer of a list: objects, folders below, and the store's time when it answered."""

    objects: list[StoredObject]
    folders: list[str]
    at: int


class Bucket:
    """The bucket of a place on S3; `requests`: how many have been made, by kind."""

    def __init__(self, place: str) -> None:
        self.name, self.requests = place.removeprefix(S3).partition("/")[0], {"LIST": 0, "HEAD": 0}
        self._store = store_of(place)
        self._made: Any = None
        self._signs: Signer | None = None

    @property
    def _client(self) -> Any:
        if self._made is None:
            self._made = make_client(self._store)
            weakref.finalize(self, self._made.close)
        return self._made

    def path(self, key: str) -> str:
        """An object as people name it."""
        return f"{S3}{self.name}/{key}"

    def pages(self, prefix: str, delimiter: str = "", after: str = "") -> Iterator[Page]:
        """Objects below a prefix in the order of their keys. Errors: ConfigError, StoreBusy."""
        more: dict[str, Any] = {"Delimiter": delimiter} if delimiter else {}
        more |= {"StartAfter": after} if after else {}
        while True:
            with named(self.path(prefix)):
                self.requests["LIST"] += 1
                answer = self._client.list_objects_v2(Bucket=self.name, Prefix=prefix, **more)
            yield Page(
                [_found(one) for one in answer.get("Contents", ())],
                [one["Prefix"] for one in answer.get("CommonPrefixes", ())],
                _time_of(answer),
            )
            if not answer.get("IsTruncated"):
                return
            more["ContinuationToken"] = answer["NextContinuationToken"]

    def now(self, key: str) -> tuple[str, int] | None:
        """ETag and bytes of an object as it is now; None where there is none. Errors: ConfigError, StoreBusy."""
        with named(self.path(key)):
            self.requests["HEAD"] += 1
            try:
                found = self._client.head_object(Bucket=self.name, Key=key)
                return found["ETag"], found["ContentLength"]
            except refusals() as error:
                if _code(error) in _ABSENT:
                    return None
                raise

    def signed(self, key: str, etag: str, size: int, *, whole: bool = False) -> Signed:
        """An address to read an object at, without asking the store."""
        with named(self.path(key)):
            return Signed(self._signer().url(key), etag, size, whole)

    def _signer(self) -> Signer:
        if self._signs is None:
            self._signs = Signer(self._client, self.name, SIGNED_SECONDS)
        return self._signs


def opened_object(path: str) -> RemoteFile:
    """An object as it is now, by its path. Errors: SourceMoved where there is none, ConfigError, StoreBusy."""
    bucket, key = Bucket(path), path.removeprefix(S3).partition("/")[2]
    found = bucket.now(key)
    if found is None:
        raise SourceMoved(f"{path}: there is no such object")
    return RemoteFile(bucket.signed(key, *found), path)


@contextmanager
def named(place: str) -> Iterator[None]:
    """What a store refuses, as an error that names it. Errors: StoreBusy where that passes, else ConfigError."""
    try:
        yield
    except refusals() as error:
        text = f"{type(error).__name__}: {error}"
        fault = store_fault(text) or store_fault(f"STATUS CODE: {_code(error)}")
        if fault is None:
            raise ConfigError(f"{place}: {error}", remedy="Look what the store's own log says of it") from error
        raise (StoreBusy if fault.passes else ConfigError)(f"{place}: {fault.why}", remedy=fault.remedy) from error


def _code(error: Exception) -> str:
    return str(getattr(error, "response", {}).get("Error", {}).get("Code", ""))


def _found(one: Any) -> StoredObject:
    return StoredObject(one["Key"], one["ETag"], one["Size"], int(one["LastModified"].timestamp()))


def _time_of(answer: Any) -> int:
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date", "")
    try:
        return int(parsedate_to_datetime(date).timestamp())
    except ValueError:
        return 0


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
