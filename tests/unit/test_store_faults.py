"""What an object store's refusal means, in the words that each client reports it with."""

from __future__ import annotations

import errno

import botocore.exceptions
import pytest

from clickjoin.model.errors import DataFileGone, LakeError, StoreBusy
from clickjoin.model.store_faults import not_read, store_fault
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


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Error performing GET http://127.0.0.1:1/b/x - error sending request - Connection refused (os error 111)",
         "the store does not answer at http://127.0.0.1:1 (connection refused)"),
        ("GET http://nosuch:9/b/x - error sending request - dns error - Name or service not known",
         "the store does not answer at http://nosuch:9 (its name is not known)"),
        ('EndpointConnectionError: Could not connect to the endpoint URL: "http://store:9000/b?list-type=2"',
         "the store does not answer at http://store:9000"),
        ("GET https://s:1/b/x - error sending request - received corrupt message of type InvalidContentType",
         "the store does not speak TLS at https://s:1"),
        ("SSLError: SSL validation failed for https://s:1/b?x [SSL: WRONG_VERSION_NUMBER] wrong version number",
         "the store does not speak TLS at https://s:1"),
        ("AWS Error NETWORK_CONNECTION: curlCode: 7, Details: Failed to connect to 127.0.0.1:1 after 0 ms",
         "the store does not answer at 127.0.0.1:1"),
        ("AWS Error NETWORK_CONNECTION: curlCode: 6; Details: Could not resolve host: nosuch.invalid",
         "the store does not answer at nosuch.invalid (its name is not known)"),
        ("AWS Error UNKNOWN (HTTP status 404): XAdminUserNotFound Message: No user exists with the provided access key",
         "the store does not know these credentials"),
        ("error occurred while loading credentials - request forbidden - IMDS is disabled or the caller has no rights",
         "no credentials were found"),
        ("an error occurred while loading credentials - failed to load IMDS session token - timeout",
         "no credentials were found, and the service that gives a machine its role does not answer"),
        ("PUT http://169.254.169.254/latest/api/token - error sending request",
         "no credentials were found, and the service that gives a machine its role does not answer"),
    ],
)  # fmt: skip
def test_what_was_tried_and_why_it_was_not_reached(text: str, why: str) -> None:
    fault = store_fault(text)
    assert fault
    assert fault.why == why


def test_a_role_that_is_not_to_be_had_just_now_is_asked_for_again() -> None:
    found = translate(OSError("S3 s3://b/p: GET http://169.254.169.254/latest - error sending request"))
    assert isinstance(found, StoreBusy)


def test_a_data_file_that_is_gone_is_still_called_so() -> None:
    found = translate(OSError("AWS Error NO_SUCH_KEY during GetObject: /p/joined/a.parquet: No such file or directory"))
    assert isinstance(found, DataFileGone)


def test_what_is_known_by_no_name_is_still_one_line_that_names_the_object() -> None:
    found = translate(OSError("When listing objects under key 'p/joined' in bucket 'b': AWS Error UNKNOWN: Teapot"))
    assert isinstance(found, LakeError)
    assert str(found).startswith("s3://b/p/joined: the store refused (")
    assert "Teapot" in str(found)


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
    assert str(denied).startswith("s3://b/p/_clock: access is denied (403). Check AWS_ACCESS_KEY_ID")
    busy = translate(RuntimeError("S3Exception: SlowDown (s3a://b/p/joined)"))
    assert isinstance(busy, StoreBusy)
    assert busy.retryable


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError("When reading 'a' in bucket 'b': AWS Error SLOW_DOWN during GetObject operation: no"), StoreBusy),
        (OSError("When reading 'a' in bucket 'b': AWS Error INTERNAL_FAILURE during GetObject operation"), StoreBusy),
        (OSError("S3 s3://b/a: ClientError: An error occurred (AccessDenied) when calling GetObject"), LakeError),
        (OSError(errno.EMFILE, "Too many open files"), LakeError),
        (PermissionError(errno.EACCES, "Permission denied"), LakeError),
        (OSError(errno.EIO, "Input/output error"), None),
        (OSError("Couldn't deserialize thrift: TProtocolException"), None),
        (FileNotFoundError("AWS Error NO_SUCH_KEY during GetObject operation"), None),
        (OSError(), None),
    ],
)
def test_a_file_that_was_not_read_is_not_damaged(error: OSError, kind: type | None) -> None:
    found = not_read("lake/p/joined/a.parquet", error)
    assert type(found) is (kind or type(None))
    assert found is None or str(found).startswith("lake/p/joined/a.parquet: ")
