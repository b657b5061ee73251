"""Every error that clickjoin raises on purpose, and whether trying again can help."""

from __future__ import annotations


class ClickjoinError(Exception):
    """Root of all errors; `remedy` says what to do, `retryable` whether trying again can help."""

    retryable = True

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(f"{message}. {remedy}" if remedy else message)
        self.remedy = remedy


class ConfigError(ClickjoinError):
    """The pipeline's file is wrong: no retry will fix it."""

    retryable = False


class AdapterError(ClickjoinError):
    """The pipeline's adapter broke its contract; nothing of the batch was claimed."""

    retryable = False


class ProcessorError(ClickjoinError):
    """The pipeline's processor failed; nothing of the batch was committed."""

    retryable = False


class SourceError(ClickjoinError):
    """A source cannot be listed or read at all (single records never raise: they go to quarantine)."""


class SourceMoved(SourceError):
    """A reader found other records than the planned ones: another look finds where they are, or that they are lost."""


class LakeError(ClickjoinError):
    """A table is missing, or its schema is not the one that this version writes."""

    retryable = False


class StoreBusy(ClickjoinError):
    """An object store does not answer, or asks for fewer requests: it passes."""


class TableMissing(LakeError):
    """A table is not there."""


class DataFileGone(LakeError):
    """A data file that a table's log names is gone or damaged."""


class VersionGone(LakeError):
    """A version of a table that was asked for cannot be read any more."""


class LakeReplaced(ClickjoinError):
    """A backup was restored under this process: what it knows is of a lake that is gone."""


class CommitRefused(ClickjoinError):
    """Another writer's commit came first, and nothing of this one is in the table: look again, and commit again."""


class CommitConflict(ClickjoinError):
    """Another writer won too many times in a row; nothing of this commit is in the table."""


class CommitStateUnknown(ClickjoinError):
    """Nobody can say whether a commit landed, or is on disk; running the same commit again finds out."""


class BatchError(ClickjoinError):
    """A batch found its own state inconsistent and stopped before it could publish something wrong."""


class FilesGone(BatchError):
    """Files that a batch wrote and has not committed are gone; run again, it writes others."""


class ClockError(ClickjoinError):
    """This process's clock and the lake's do not agree, so that nothing can be called old; nothing was removed."""

    retryable = False


class DateError(ClickjoinError):
    """A date cannot be worked on: it has not begun, or its rows are not all there; nothing was changed."""

    retryable = False


class DateBusy(ClickjoinError):
    """Another run works on the same date."""


class ServerLost(ClickjoinError):
    """The Spark server cannot be reached, or went away during a batch; the batch is run again."""


class ExecutorLost(ServerLost):
    """An executor of Spark's ended with what it held of a batch; Spark itself goes on, and the batch is run again."""


class WorkInterrupted(ServerLost):
    """The Spark server is there, and someone has interrupted what it did for this batch; the batch is run again."""
