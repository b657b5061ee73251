"""Errors of the layers below, by their texts as they came: which of them we know."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from delta.exceptions.base import ConcurrentAppendException, MetadataChangedException
from py4j.protocol import Py4JNetworkError
from pyspark.errors.exceptions.connect import PythonException, SparkConnectGrpcException

from clickjoin.engines.commit_errors import commit_error
from clickjoin.kernel.handshake import VersionMismatch, Versions, require_same
from clickjoin.model.errors import (
    BatchError,
    CommitRefused,
    CommitStateUnknown,
    ConfigError,
    ExecutorLost,
    LakeError,
    ServerLost,
    SourceError,
    SourceMoved,
    VersionGone,
    WorkInterrupted,
)
from clickjoin.spark.executor_failures import gist
from clickjoin.spark.failures import adapter_fault, lost_jvm, translate

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


NO_PYARROW = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/spark/python/lib/pyspark.zip/pyspark/cloudpickle/cloudpickle.py", line 469, in subimport
    __import__(name)
ModuleNotFoundError: No module named 'pyarrow'
"""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PythonException(NO_PYARROW), "Spark's executors have no pyarrow. Install the same Python, PyArrow and NumPy "),
        (
            PythonException("ModuleNotFoundError: No module named 'numpy.core'"),
            "Spark's executors have no numpy. Install ",
        ),
        (
            RuntimeError('java.io.IOException: Cannot run program "/opt/python": error=2, No such file or directory'),
            "Spark's executors cannot start '/opt/python' as Python. Install ",
        ),
    ],
)
def test_executors_that_lack_something(error: Exception, words: str) -> None:
    found = translate(raised(error))
    assert isinstance(found, ConfigError)
    assert str(found).startswith(words)
    assert f"numpy {numpy.__version__}), and let PYSPARK_PYTHON name" in str(found)


LOST = (
    "ExecutorLostFailure (executor 0 exited unrelated to the running tasks) Reason: Command exited with code 137",
    "[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_12_0 not found!",
    "org.apache.spark.shuffle.FetchFailedException: Connection refused",
    "java.io.IOException: org.apache.spark.SparkException: Failed to get broadcast_7_piece0 of broadcast_7",
)


@pytest.mark.parametrize("text", LOST)
def test_an_executor_that_is_gone(text: str) -> None:
    found = translate(raised(Py4JJavaError(f"Job aborted due to stage failure: {text}")))
    assert isinstance(found, ExecutorLost)
    assert found.retryable
    over_connect = SparkConnectGrpcException(f"(SparkException) {text}\n\tat Connection refused: /10.0.0.7:38111")
    assert isinstance(translate(raised(over_connect)), ExecutorLost), "and not the server"
    assert translate(raised(PythonException(f"Traceback ...\nValueError: {text}"))) is None, "an adapter's own words"


def test_credentials_that_executors_lack_are_said_to_be_theirs() -> None:
    text = (
        "Traceback (most recent call last):\nOSError: When reading 's3://b/k': AWS Error ACCESS_DENIED during GetObject"
    )
    found = translate(raised(PythonException(text)))
    assert isinstance(found, LakeError)
    assert "access is denied (403), as Spark's executors find it" in str(found)
    assert "executors" not in str(translate(raised(OSError(text))))


def test_an_error_in_a_line() -> None:
    assert gist(PythonException(NO_PYARROW)) == "ModuleNotFoundError: No module named 'pyarrow'"
    assert gist(PythonException("\n  An exception was thrown\nTraceback ...")) == "An exception was thrown"
    assert gist(TimeoutError()) == ""


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


def test_one_of_ours_stays_as_it_is() -> None:
    ours = raised(BatchError("two claims"), Py4JNetworkError("Answer from Java side is empty"))
    assert translate(ours) is ours


def test_work_that_was_interrupted() -> None:
    found = translate(SparkConnectGrpcException("[OPERATION_CANCELED] Operation has been canceled"))
    assert isinstance(found, WorkInterrupted)


def test_what_the_kernel_raised_on_an_executor() -> None:
    moved = (
        "Traceback ...\nclickjoin.model.errors.SourceMoved: /logs/a: is not where it was. Run it again\n\tat java.base"
    )
    found = translate(raised(RuntimeError(moved)))
    assert isinstance(found, SourceMoved)
    assert str(found) == "/logs/a: is not where it was. Run it again"
    fault = "Traceback ...\nclickjoin.kernel.merge.AdapterFault: dropped price\n\tat java.base"
    refused = (
        "Traceback ...\nclickjoin.model.errors.SourceError: /logs/a: may not be read any more (Permission denied)\n"
    )
    found = translate(raised(RuntimeError(refused)))
    assert type(found) is SourceError
    assert found.retryable
    assert adapter_fault(raised(RuntimeError(fault))) == "dropped price"
    assert adapter_fault(raised(RuntimeError("dropped price"))) is None


def test_a_version_that_spark_reads_no_more() -> None:
    text = "[DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION] Cannot time travel"
    assert isinstance(translate(raised(RuntimeError(text))), VersionGone)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConcurrentAppendException("Files were added"), CommitRefused),
        (MetadataChangedException("changed"), CommitRefused),
        (RuntimeError("clickjoin.storage.CommitStateUnknownException: /lake/registry: version 3"), CommitStateUnknown),
        (RuntimeError("[DELTA_TABLE_NOT_FOUND] no"), None),
    ],
)
def test_how_a_commit_failed(error: Exception, kind: type[Exception] | None) -> None:
    found = commit_error(error)
    assert type(found) is (kind or type(None))
    assert commit_error(raised(RuntimeError("else"), error)) is None, "a cause may be of an earlier try"


@pytest.mark.parametrize("text", ["ConnectionRefusedError: Connection refused", "BrokenPipeError: Broken pipe"])
def test_what_an_adapter_ran_into_is_no_lost_server(text: str) -> None:
    error = PythonException(f"Traceback ...\n{text}\n\tat org.apache.spark.api.python.BasePythonRunner")
    assert translate(raised(error)) is None
