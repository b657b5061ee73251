"""Errors of the layers below, by their texts as they came: which of them we know."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from clickjoin.kernel.handshake import VersionMismatch, Versions, require_same
from clickjoin.model.errors import ConfigError, LakeError, ServerLost
from clickjoin.spark.failures import lost_jvm, translate

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
    found = translate(OSError(text))
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
    assert isinstance(translate(error), ServerLost)


def test_a_server_that_is_gone() -> None:
    found = translate(
        SparkConnectGrpcException("<_MultiThreadedRendezvous: StatusCode.UNAVAILABLE; Connection refused>")
    )
    assert isinstance(found, ServerLost)
    assert not lost_jvm(found)


def test_executors_that_are_not_like_the_driver() -> None:
    """What a task says first, as Spark passes it on, and what PySpark says of another Python."""
    there = Versions("3.11", "17", "1")
    with pytest.raises(VersionMismatch) as caught:
        require_same(Versions("3.11", "21", "2"), there)
    spark = (
        f"[PYTHON_EXCEPTION] Traceback ...\nclickjoin.kernel.handshake.VersionMismatch: {caught.value}\n\tat java.base"
    )
    python = "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10 than that in driver: 3.11"
    for text, words in (
        (spark, "pyarrow 17 there, 21 here; numpy 1 there, 2 here"),
        (python, "3.10 than that in driver"),
    ):
        found = translate(raised(RuntimeError(text)))
        assert isinstance(found, ConfigError)
        assert words in str(found)
        assert "Install the same Python" in str(found)
    require_same(there, there)


@pytest.mark.parametrize("error", [ValueError("no"), KeyError("UNAVAILABLE"), ConnectionRefusedError("elsewhere")])
def test_other_errors_are_not_ours(error: Any) -> None:
    assert translate(raised(error)) is None


class Py4JJavaError(Exception):
    """As py4j raises it: what Java said is its text."""

    __module__ = "py4j.protocol"


def test_a_python_worker_that_was_killed() -> None:
    text = (
        "Task 1 in stage 47.0 failed: java.io.IOException: Stream closed\n\tat org.apache.spark.api.python.PythonRunner"
    )
    found = translate(raised(Py4JJavaError(text)))
    assert isinstance(found, ServerLost)
    assert found.retryable
    assert str(found).startswith(
        "a Python worker of Spark has ended, or was killed (for want of memory?). Run it again"
    )
    assert translate(raised(Py4JJavaError("java.io.IOException: Stream closed"))) is None
    assert translate(raised(OSError(text))) is None
