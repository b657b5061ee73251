"""Errors of the layers below that people meet, recognised by their texts: a disk that refuses, a Spark that is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clickjoin.model.errors import (
    ClickjoinError,
    DataFileGone,
    LakeError,
    ServerLost,
    StoreBusy,
    VersionGone,
    WorkInterrupted,
)
from clickjoin.model.store_faults import store_fault
from clickjoin.spark.executor_failures import RUN_AGAIN, lost, of_source, unlike

_REFUSED = (
    "Read-only file system", "Permission denied", "PermissionDenied", "Operation not permitted", "Not a directory",
    "NotADirectory", "No space left on device", "Disk quota exceeded", "File too large",
    "Could not create local directory",
)  # fmt: skip
_PLACE = re.compile(r"(?:Unable to open file|Could not create local directory:|Mkdirs failed to create) (/[^\n#]+)")
_DATA = re.compile(r"(/[^\s'\"]+\.parquet)\b")
_UNREADABLE = ("FileNotFoundError", "FILE_NOT_EXIST", "PATH_NOT_FOUND", "No such file or directory", " not found",
               "FAILED_READ_FILE", "not a Parquet file", "Parquet magic bytes", "deserialize thrift")  # fmt: skip
_STORE = re.compile(r"s3a?://|\bS3\b|AWS Error|AmazonS3|S3Exception|object[ _]store|generic S3", re.IGNORECASE)
_KEY = re.compile(r"key '([^']*)' in bucket '([^']*)'")  # as Arrow names an object
_REFUSAL = "AWS Error"
_URI = re.compile(r"s3a?://[^\s'\",:)]+")
_SYSTEM = re.compile(r"Read-only file system|Permission denied|Not a directory|No such file or directory|"
                     r"Operation not permitted|No space left on device|Disk quota exceeded|File too large")  # fmt: skip
# What a client hears when its server is gone, or has come back without the client's session.
_GONE = ("UNAVAILABLE", "UNAUTHENTICATED", "SESSION_NOT_FOUND", "SESSION_CHANGED", "SESSION_CLOSED",
         "OPERATION_NOT_FOUND", "OPERATION_ABANDONED", "Connection refused", "Connection reset", "Socket closed",
         "stopped SparkContext")  # fmt: skip
_INTERRUPTED = "OPERATION_CANCELED"
_ADAPTER = re.compile(r"\bAdapterFault: ([^\n]*)")
_TIME_TRAVEL = "TIME_TRAVEL"  # Spark reads no version older than delta.deletedFileRetentionDuration, by its own clock


def translate(error: BaseException) -> ClickjoinError | None:
    """The error as one of ours, with a remedy; itself where it is one; None where it is none that we know."""
    if isinstance(error, ClickjoinError):
        return error
    if lost_jvm(error):
        return ServerLost("Spark is lost: its process has ended, or was killed (for want of memory?)", remedy=RUN_AGAIN)
    chain = list(_chain(error))
    kinds = (_of_executor, _lost_server, _of_store, _of_lake, _refused_by_store)
    return next((found for kind in kinds for one in chain if (found := kind(one))), None)


def adapter_fault(error: BaseException) -> str | None:
    """What an ArrowAdapter did wrong, where that is why a task failed (kernel.merge.AdapterFault)."""
    found = _ADAPTER.search(f"{type(error).__name__}: {error}")
    return found[1] if found else None


def _lost_server(error: BaseException) -> ClickjoinError | None:
    text = str(error)
    if _module(error) not in ("pyspark", "grpc") or _in_python(error):
        return None
    if any(mark in text for mark in _GONE):
        return ServerLost(
            "the Spark server is lost", remedy="Start it (`make up`) and run this again: nothing is lost or doubled"
        )
    if _INTERRUPTED in text:
        return WorkInterrupted("its work was interrupted on the Spark server", remedy=RUN_AGAIN)
    return None


def _of_executor(error: BaseException) -> ClickjoinError | None:
    text = str(error)
    of_spark = _module(error) in ("pyspark", "py4j")
    if found := unlike(text):
        return found
    if of_spark and not _in_python(error) and (gone := lost(text)):
        return gone
    return of_source(text)


def _of_store(error: BaseException) -> ClickjoinError | None:
    """What an object store refused; one that is asked too much, or is away, is asked again."""
    text = f"{type(error).__name__}: {error}"
    if _module(error) == "grpc" or not _STORE.search(text):
        return None
    fault = store_fault(text)
    if fault is None:
        return None
    whose = ", as Spark's executors find it, by what they have of AWS_* themselves" if _in_python(error) else ""
    what = f"{_object(text)}: {fault.why}{whose}"
    return (StoreBusy if fault.passes else LakeError)(what, remedy=fault.remedy)


def _refused_by_store(error: BaseException) -> ClickjoinError | None:
    """Whatever else a store refuses."""
    text = str(error)
    if _module(error) == "grpc" or _REFUSAL not in text:
        return None
    return LakeError(
        f"{_object(text)}: the store refused ({text[:300]})", remedy="Look what the store's own log says of it"
    )


def _object(text: str) -> str:
    place, key = _URI.search(text), _KEY.search(text)
    return place[0] if place else f"s3://{key[2]}/{key[1]}" if key else "the object store"


def _of_lake(error: BaseException) -> ClickjoinError | None:
    text = str(error)
    if _TIME_TRAVEL in text:
        return VersionGone(text[:500], remedy="Read a newer version")
    if (file := _DATA.search(text) or "Parquet magic bytes" in text) and any(mark in text for mark in _UNREADABLE):
        return DataFileGone(
            f"{file[1] if isinstance(file, re.Match) else 'the lake'}: a data file of the lake is gone or damaged",
            remedy="Run `clickjoin verify --repair`: it names what was lost, and repairs it from what is left",
        )
    if any(mark in text for mark in _REFUSED):
        place, why = _PLACE.search(text), _SYSTEM.search(text)
        return LakeError(
            f"{place[1] if place else 'a file of the lake'}: cannot be written ({why[0] if why else 'refused'})",
            remedy="Fix the folder's permissions or its disk, or name another lake in the pipeline's file",
        )
    return None


def _in_python(error: BaseException) -> bool:
    """Whether it was raised by Python code on an executor: an adapter's own refused connection is no lost server."""
    return type(error).__name__ == "PythonException"


def lost_jvm(error: BaseException) -> bool:
    """Whether the Java process of a session in this process is gone: then the session is of no use any more."""
    chain = list(_chain(error))
    names = {type(one).__name__ for one in chain}
    if "Py4JNetworkError" in names:
        return True
    refused = any(isinstance(one, ConnectionError) for one in chain)
    return refused and any("py4j" in (frame or "") for one in chain for frame in _files(one))


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo:
        one = todo.pop()
        if one is not None and not any(one is other for other in seen):
            seen.append(one)
            todo += [one.__context__, one.__cause__]
            yield one


def _files(error: BaseException) -> Iterator[str]:
    trace = error.__traceback__
    while trace:
        yield trace.tb_frame.f_code.co_filename
        trace = trace.tb_next


def _module(error: BaseException) -> str:
    return type(error).__module__.partition(".")[0]
