"""What Spark is set to for a lake on S3, by the same environment as delta-rs and Arrow read: `AWS_*`."""

from __future__ import annotations

from collections.abc import Mapping

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
    found = dict(_FIXED)
    found |= {f"spark.executorEnv.{name}": environment[name] for name in _WHERE if environment.get(name)}
    if region := environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION"):
        found["spark.hadoop.fs.s3a.endpoint.region"] = region
    if endpoint := environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL"):
        found["spark.hadoop.fs.s3a.endpoint"] = endpoint
        found["spark.hadoop.fs.s3a.path.style.access"] = "true"
        found["spark.hadoop.fs.s3a.connection.ssl.enabled"] = str(endpoint.startswith("https:")).lower()
    return found
