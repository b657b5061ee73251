"""What the loss of Spark looks like from outside: a server that is gone, or a JVM that died under this process."""

from __future__ import annotations

import re

from clickjoin.errors import ServerLost

# What a client hears when its server is gone, or has come back without the client's session.
_MARKS = ("UNAVAILABLE", "UNAUTHENTICATED", "SESSION_NOT_FOUND", "SESSION_CHANGED", "SESSION_CLOSED",
          "OPERATION_NOT_FOUND", "OPERATION_ABANDONED", "Connection refused", "Connection reset",
          "Socket closed", "stopped SparkContext", "Answer from Java side is empty", "RETRIES_EXCEEDED")  # fmt: skip
_PACKAGES = ("pyspark", "grpc", "py4j")
_GRPC_DETAILS = re.compile(r'^\s*details = "(.{1,300})', re.MULTILINE)


def is_of_spark(error: BaseException) -> bool:
    """Whether Spark's client raised it."""
    return any(kind.__module__.partition(".")[0] in _PACKAGES for kind in type(error).__mro__)


def is_lost(error: BaseException) -> bool:
    """Whether it says that Spark is gone: then nothing is wrong with the work, which can be begun again."""
    if isinstance(error, ServerLost):
        return True
    if isinstance(error, ConnectionError) and _through_py4j(error):
        return True
    return is_of_spark(error) and any(mark in str(error) for mark in _MARKS)


def _through_py4j(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace:
        if "py4j" in trace.tb_frame.f_code.co_filename:
            return True
        trace = trace.tb_next
    return False


def gist(error: BaseException) -> str:
    """Its first line; of a failed call to a server, what the server or the wire said."""
    text = str(error)
    details = _GRPC_DETAILS.search(text)  # else the first line only says that a call failed
    return details[1] if details else next(iter(text.splitlines()), type(error).__name__)[:300]
