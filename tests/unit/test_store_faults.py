"""What an object store's refusal means, in the words that each client reports it with."""

from __future__ import annotations

import botocore.exceptions
import pytest

from clickjoin.model.errors import LakeError, StoreBusy
from clickjoin.model.store_faults import store_fault
from clickjoin.spark.failures import translate

SAID = {
    "An error occurred (NoSuchBucket) when calling the PutObject operation": "no such bucket",
    "AWS Error NO_SUCH_BUCKET during PutObject operation": "no such bucket",
    "AWS Error ACCESS_DENIED during HeadObject operation: No response body.": "access is denied",
    "AccessDeniedException: s3a://b/p: getFileStatus: No (Service: S3, Status Code: 403)": "access is denied",
    "The operation lacked the necessary privileges to complete for path p": "access is denied",
    "An error occurred (ExpiredToken) when calling the PutObject operation": "have expired",
    "AWS Error UNKNOWN (RequestTimeTooSkewed)": "clock",
    "software.amazon.awssdk.services.s3.model.S3Exception: Please reduce your request rate. SlowDown": "fewer requests",
    "NoCredentialsError: Unable to locate credentials": "no credentials",
    "AWS Error NETWORK_CONNECTION during ListObjectsV2 operation: curlCode: 7": "does not answer",
    "Generic S3 error: Error performing GET: HTTP error: error sending request": "does not answer",
    "Generic S3 error: HTTP error: request or response body error": "does not answer",
    "SdkClientException: Premature end of Content-Length delimited message body (s3a://b/p)": "does not answer",
}
PLACE = {"endpoint_url": "http://store:9000/b/p", "proxy_url": "http://proxy", "error": "[Errno 104]"}
CONNECTIONS = (
    botocore.exceptions.EndpointConnectionError,
    botocore.exceptions.ConnectionClosedError,
    botocore.exceptions.ConnectTimeoutError,
    botocore.exceptions.ReadTimeoutError,
    botocore.exceptions.ProxyConnectionError,
    botocore.exceptions.ResponseStreamingError,
    botocore.exceptions.HTTPClientError,
)


@pytest.mark.parametrize("text", SAID)
def test_by_name(text: str) -> None:
    fault = store_fault(text)
    assert fault
    assert SAID[text] in fault.why


@pytest.mark.parametrize("kind", CONNECTIONS)
def test_a_connection_that_breaks_at_any_point_is_worth_another_try(kind: type[Exception]) -> None:
    """As lake.objects words it: a store that is started again while it is read must not end a run with a traceback."""
    error = kind(**PLACE)  # type: ignore[arg-type]
    found = translate(OSError(f"S3 s3://b/p/journal: {kind.__name__}: {error}"))
    assert isinstance(found, StoreBusy)
    assert found.retryable
    assert str(found).startswith("s3://b/p/journal: the store does not answer")


def test_a_certificate_that_is_not_accepted_is_not_tried_again() -> None:
    error = botocore.exceptions.SSLError(**PLACE)
    found = translate(OSError(f"S3 s3://b/p: SSLError: {error}"))
    assert isinstance(found, LakeError)
    assert not found.retryable
    assert "AWS_CA_BUNDLE" in str(found)


@pytest.mark.parametrize("text", ["", "joined: no such column", "Permission denied: /lake", "PATH_NOT_FOUND s3://b/x"])
def test_all_else_is_none_of_these(text: str) -> None:
    assert store_fault(text) is None


def test_of_spark_and_arrow_it_is_one_of_ours() -> None:
    denied = translate(OSError("When reading s3://b/p/_clock: AWS Error ACCESS_DENIED during HeadObject operation"))
    assert isinstance(denied, LakeError)
    assert str(denied).startswith("s3://b/p/_clock: access is denied (403). Let these credentials")
    busy = translate(RuntimeError("S3Exception: SlowDown (s3a://b/p/joined)"))
    assert isinstance(busy, StoreBusy)
    assert busy.retryable
