"""Which failures are worth another try, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow.sdk.definitions.retry_policy import RetryDecision, RetryPolicy
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException, AirflowTaskTimeout

from clickjoin.model.errors import ClickjoinError, ConfigError, ServerLost, WorkInterrupted
from clickjoin.spark.executor_failures import gist
from clickjoin.spark.failures import translate

if TYPE_CHECKING:
    from airflow.sdk import Context

_GRPC_DETAILS = re.compile(r'^\s*details = "(.{1,300})', re.MULTILINE)
_FULL = "No space left on device"
_UNKNOWN_TRIES = 5


class Stopped(BaseException):
    """The task was asked to stop. No Exception, so that nothing on the way takes it for a failed batch."""


@dataclass(frozen=True)
class Verdict:
    """Whether to try again, why, and how many tries there are at most (None: as many as the task has)."""

    again: bool
    reason: str
    tries: int | None = None


def judge(error: BaseException) -> Verdict:
    """Say whether trying again can help."""
    text = _gist(error)
    if isinstance(error, Stopped | AirflowTaskTimeout):
        return Verdict(True, f"the task was stopped ({text}); the batch that was cut short goes first")
    if isinstance(error, AirflowFailException | AirflowNotFoundException):
        return Verdict(False, text)
    if isinstance(error, ClickjoinError) and not error.retryable:
        return Verdict(False, str(error))
    known = translate(error)
    if isinstance(known, ConfigError):
        return Verdict(False, str(known))
    if isinstance(known, WorkInterrupted):
        return Verdict(True, f"its work was interrupted on the Spark server ({text})")
    if isinstance(known, ServerLost):
        return Verdict(True, f"the Spark server is lost; the batch that was cut short goes first ({text})")
    if isinstance(error, ClickjoinError):
        return Verdict(True, f"another try can help ({text})")
    return _of_unknown(error, text)


def _of_unknown(error: BaseException, text: str) -> Verdict:
    if _FULL in text:
        return Verdict(True, f"the disk is full: make room; the batch that was cut short goes first ({text})")
    return Verdict(True, f"nothing says that it is permanent ({type(error).__name__}: {text})", _UNKNOWN_TRIES)


def _gist(error: BaseException) -> str:
    text = str(error)
    details = _GRPC_DETAILS.search(text)  # else the first line only says that a call failed
    return details[1] if details else gist(error) or type(error).__name__


class RetryByCause(RetryPolicy):
    """Lets a task be tried again where that can help; Airflow logs and stores the reason."""

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Context | None = None
    ) -> RetryDecision:
        """Decide on one failure. The pause is the task's own."""
        verdict = judge(exception)
        most = max_tries + 1 if verdict.tries is None else min(verdict.tries, max_tries + 1)
        if not verdict.again:
            return RetryDecision.fail(f"not tried again: {verdict.reason}")
        if try_number >= most:
            return RetryDecision.fail(f"not tried again, as {try_number} tries failed: {verdict.reason}")
        return RetryDecision.retry(reason=f"tried again (try {try_number} of {most} failed): {verdict.reason}")
