"""What went wrong on executors, by the texts that reach the driver: another Python, or one that is gone."""

from __future__ import annotations

import re

from clickjoin.model.errors import (
    ClickjoinError,
    ConfigError,
    ExecutorLost,
    ServerLost,
    SourceError,
    SourceMoved,
    StoreBusy,
)

RUN_AGAIN = "Run it again: the batch that was cut short goes first, and nothing is lost or doubled"
# Of kernel.handshake, and of PySpark for a worker whose Python is another.
_MISMATCH = re.compile(r"\bVersionMismatch: ([^\n]*)\.|PYTHON_VERSION_MISMATCH\] ([^\n]*)")
_LACKS = re.compile(r"\bNo module named '(pyarrow|numpy)\b|\b(PyArrow|NumPy) >= [\d.]+ must be installed")
_REMEDY = (
    "Install the same Python, PyArrow and NumPy there as here ({}), and let PYSPARK_PYTHON name that Python's path on "
    "the executors: in this process's environment, or in that of the Spark Connect server. Kafka needs confluent-kafka "
    "there too"
)
_NO_PYTHON = re.compile(r'Cannot run program "([^"\n]*)"')
# What Spark says when one of its Python workers has been killed: the worker's own end, or a pipe that is closed.
_WORKER = "org.apache.spark.api.python"
_ENDED = ("Python worker exited unexpectedly", "Stream closed", "java.io.EOFException", "Broken pipe")
# An executor that ended, or what is missed of it: the blocks of a local checkpoint, a broadcast or a shuffle.
_LOST = (
    "ExecutorLostFailure", "ExecutorDeadException", "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND", "Checkpoint block rdd_",
    "FetchFailed", "BlockNotFoundException", "Failed to get broadcast_", "result lost from block manager",
    "Failed to get block", "Failed to fetch block",
)  # fmt: skip
# The last line of a traceback from an executor, where the kernel's errors have lost their type.
_SOURCE = re.compile(r"\b(SourceMoved|SourceError|StoreBusy): ([^\n]*)")
_READERS: dict[str, type[ClickjoinError]] = {
    "SourceMoved": SourceMoved, "SourceError": SourceError, "StoreBusy": StoreBusy,
}  # fmt: skip
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LAST_LINE = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Fault|Mismatch)(?:: [^\n]*)?$", re.MULTILINE)


def unlike(text: str) -> ConfigError | None:
    """Why an executor's Python cannot run what the driver ships to it; None where that is not what is wrong."""
    what = ""
    if found := _MISMATCH.search(text):
        what = f"Spark's executors are not like the driver: {found[1] or found[2]}"
    elif found := _LACKS.search(text):
        what = f"Spark's executors have no {(found[1] or found[2]).lower()}"
    elif found := _NO_PYTHON.search(text):
        what = f"Spark's executors cannot start {found[1]!r} as Python"
    if not what:
        return None
    from clickjoin.kernel.handshake import installed  # PyArrow is too heavy for whoever only parses a DAG's file

    return ConfigError(what, remedy=_REMEDY.format(installed()))


def lost(text: str) -> ServerLost | None:
    """The end of an executor, or of a Python worker on one; None where that is not what is wrong."""
    if any(mark in text for mark in _LOST):
        return ExecutorLost("an executor of Spark has ended, or cannot be reached", remedy=RUN_AGAIN)
    if _WORKER in text and any(mark in text for mark in _ENDED):
        return ServerLost("a Python worker of Spark has ended, or was killed (for want of memory?)", remedy=RUN_AGAIN)
    return None


def of_source(text: str) -> ClickjoinError | None:
    """What a reader said of its file, or an object store of its object."""
    found = _SOURCE.search(text)
    return _READERS[found[1]](found[2]) if found else None


def gist(error: BaseException) -> str:
    """An error in a line, empty where it says nothing. Of what Python raised on an executor, its traceback's last.

    delta-rs gives each cause a line of its own, behind an arrow: all of them.
    """
    text = _COLOUR.sub("", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    raised = _LAST_LINE.findall(text) if "Traceback (most recent call last)" in text else []
    causes = [line.strip(" ↳") for line in lines[1:] if line.startswith("↳")]
    return (raised[-1] if raised else ": ".join([*lines[:1], *causes]))[:300]
