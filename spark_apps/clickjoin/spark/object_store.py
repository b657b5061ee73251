"""What Spark is set to for a lake on S3: by the environment (`AWS_*`), and for a bucket by a pipeline's file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from clickjoin.model.places import S3, Store, declared, store_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STORE = "clickjoin.storage.S3LogStore"
_CREDENTIALS = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
LOG_STORES = {"spark.delta.logStore.s3.impl": _STORE, "spark.delta.logStore.s3a.impl": _STORE}
# Without the second `s3://` is a scheme that nobody knows.
REQUIRED = {**LOG_STORES, "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}
_FIXED = {
    **REQUIRED,
    # Secrets are looked for where Amazon's own programs look, and so are in no setting that a log or a page could show.
    "spark.hadoop.fs.s3a.aws.credentials.provider": _CREDENTIALS,
    # A server that is gone is noticed in seconds: S3A's own 200 s would hold up a batch, and whoever waits for it.
    "spark.hadoop.fs.s3a.connection.establish.timeout": "5s",
    "spark.hadoop.fs.s3a.connection.timeout": "30s",
}
# Read by the Python of executors, which may be on other machines. No secret is among them.
_WHERE = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION")


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings for S3: log stores, where the server is, for executors too, and whence credentials come.

    With an endpoint of one's own (`AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`) a bucket is part of the path.
    """
    store = store_of("", environment)
    of_executors = {f"spark.executorEnv.{name}": environment[name] for name in _WHERE if environment.get(name)}
    return _FIXED | of_executors | {f"spark.hadoop.fs.s3a.{name}": value for name, value in _of(store).items()}


def reach(session: SparkSession, root: str) -> None:
    """Have a session find the store that a pipeline's file names for its lake.

    For the lake's bucket alone: a server may serve pipelines of several stores. One Spark knows a bucket's name once.
    """
    if declared(root) is None:
        return
    bucket = root.removeprefix(S3).partition("/")[0]
    for name, value in _of(store_of(root)).items():
        session.conf.set(f"fs.s3a.bucket.{bucket}.{name}", value)


def _of(store: Store) -> dict[str, str]:
    """S3A's settings of a store, by their names without a prefix."""
    found = {"endpoint.region": store.region} if store.region else {}
    if not store.endpoint:
        return found
    return found | {
        "endpoint": store.endpoint,
        "path.style.access": str(bool(store.path_style)).lower(),
        "connection.ssl.enabled": str(store.has_tls).lower(),
    }
