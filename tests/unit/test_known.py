"""Errors of the layers below, by their texts as they came: which of them we know."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from clickjoin.errors import LakeError, ServerLost
from clickjoin.known import known, lost_jvm

READ_ONLY = (
    "Failed to parse parquet: External: Generic LocalFileSystem error: Unable to open file "
    "/mnt/lake/p/boundary/part-00000-ae.snappy.parquet#1: Read-only file system (os error 30)"
)
NO_FOLDER = (
    "Could not create local directory: /file/p/boundary\nError: "
    'Os { code: 20, kind: NotADirectory, message: "Not a directory" }'
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (READ_ONLY, "/mnt/lake/p/boundary/part-00000-ae.snappy.parquet: cannot be written (Read-only file system). "),
        (NO_FOLDER, "/file/p/boundary: cannot be written (Not a directory). "),
    ],
)
def test_a_disk_that_refuses(text: str, message: str) -> None:
    found = known(OSError(text))
    assert isinstance(found, LakeError)
    assert str(found).startswith(message)


def raised(error: Exception, cause: Exception | None = None) -> Exception:
    try:
        raise error from cause
    except Exception as caught:
        return caught


def test_a_java_process_that_is_gone() -> None:
    error = raised(RuntimeError("commit failed"), Py4JNetworkError("Answer from Java side is empty"))
    assert lost_jvm(error)
    assert isinstance(known(error), ServerLost)


def test_a_server_that_is_gone() -> None:
    found = known(SparkConnectGrpcException("<_MultiThreadedRendezvous: StatusCode.UNAVAILABLE; Connection refused>"))
    assert isinstance(found, ServerLost)
    assert not lost_jvm(found)


@pytest.mark.parametrize("error", [ValueError("no"), KeyError("UNAVAILABLE"), ConnectionRefusedError("elsewhere")])
def test_other_errors_are_not_ours(error: Any) -> None:
    assert known(raised(error)) is None


class Py4JJavaError(Exception):
    """As py4j raises it: what Java said is its text."""

    __module__ = "py4j.protocol"


def test_a_python_worker_that_was_killed() -> None:
    text = (
        "Task 1 in stage 47.0 failed: java.io.IOException: Stream closed\n\tat org.apache.spark.api.python.PythonRunner"
    )
    found = known(raised(Py4JJavaError(text)))
    assert isinstance(found, ServerLost)
    assert found.retryable
    assert str(found).startswith(
        "a Python worker of Spark has ended, or was killed (for want of memory?). Run it again"
    )
    assert known(raised(Py4JJavaError("java.io.IOException: Stream closed"))) is None
    assert known(raised(OSError(text))) is None
