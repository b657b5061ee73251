"""Which failures are tried again, and why."""

from __future__ import annotations

import pytest
from airflow.sdk.definitions.retry_policy import RetryAction
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException, AirflowTaskTimeout
from pyspark.errors.exceptions.connect import AnalysisException, PythonException, SparkConnectGrpcException

from clickjoin.model import errors
from clickjoin_airflow.verdict import RetryByCause, Stopped, judge

REFUSED = """<_MultiThreadedRendezvous of RPC that terminated with:
	status = StatusCode.UNAVAILABLE
	details = "failed to connect to all addresses"
>"""


@pytest.mark.parametrize(
    "error",
    [
        errors.ConfigError("adapter a:B: cannot be imported", remedy="Check its spelling"),
        errors.AdapterError("dropped event_id"),
        errors.LakeError("no such table"),
        AirflowFailException("no"),
        AirflowNotFoundException("connection x isn't defined"),
    ],
)
def test_never_again(error: Exception) -> None:
    verdict = judge(error)
    assert not verdict.again
    assert verdict.reason == str(error)
    assert RetryByCause().evaluate(error, 1, 9).action is RetryAction.FAIL


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errors.ServerLost("sc://localhost:1: no Spark Connect server answers"), "server is lost"),
        (SparkConnectGrpcException(REFUSED), "server is lost"),
        (SparkConnectGrpcException("[INVALID_HANDLE.SESSION_NOT_FOUND] The handle is invalid"), "server is lost"),
        (SparkConnectGrpcException("Cannot call methods on a stopped SparkContext."), "server is lost"),
        (SparkConnectGrpcException("StatusCode.UNAUTHENTICATED"), "server is lost"),
        (SparkConnectGrpcException("[OPERATION_CANCELED] Operation has been canceled"), "interrupted"),
        (errors.CommitConflict("refused 30 times"), "another try can help"),
        (OSError(28, "No space left on device"), "the disk is full"),
        (
            OSError("Generic error\n  \x1b[31m↳\x1b[0m No copy\n  \x1b[31m↳\x1b[0m No space left on device"),
            "disk is full",
        ),
        (Stopped("asked to stop"), "was stopped"),
        (AirflowTaskTimeout("Timeout"), "was stopped"),
    ],
)
def test_again_for_as_long_as_the_task_may(error: BaseException, words: str) -> None:
    verdict = judge(error)
    assert verdict.again
    assert verdict.tries is None
    assert words in verdict.reason
    decision = RetryByCause().evaluate(error, 7, 9)
    assert decision.action is RetryAction.RETRY
    assert "try 7 of 10 failed" in str(decision.reason)
    assert RetryByCause().evaluate(error, 10, 9).action is RetryAction.FAIL


@pytest.mark.parametrize(
    "error", [ValueError("odd"), AnalysisException("column not found"), OSError("Connection refused")]
)
def test_unknown_is_tried_a_few_times(error: Exception) -> None:
    policy = RetryByCause()
    assert policy.evaluate(error, 4, 1000).action is RetryAction.RETRY
    assert policy.evaluate(error, 5, 1000).action is RetryAction.FAIL
    assert "5 tries failed" in str(policy.evaluate(error, 5, 1000).reason)


def test_executors_that_lack_something_are_never_asked_again() -> None:
    raised = PythonException("\nTraceback (most recent call last):\nModuleNotFoundError: No module named 'pyarrow'\n")
    verdict = judge(raised)
    assert not verdict.again
    assert verdict.reason.startswith("Spark's executors have no pyarrow. Install the same Python, PyArrow and NumPy")


def test_reason_of_a_failed_call() -> None:
    assert "failed to connect to all addresses" in judge(SparkConnectGrpcException(REFUSED)).reason


def test_reason_without_words() -> None:
    assert "KeyError" in judge(KeyError()).reason
