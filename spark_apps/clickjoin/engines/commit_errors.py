"""How a commit by Spark failed, as a type: refused since another came first, or nobody knows."""

from __future__ import annotations

from clickjoin.model.errors import CommitConflict, CommitRefused, CommitStateUnknown

_CONFLICTS = "delta.exceptions.base"  # all that Delta calls a conflict; PySpark raises them once they are imported
_UNKNOWN = "clickjoin.storage.CommitStateUnknownException"  # of infra/logstore


def commit_error(error: BaseException) -> CommitRefused | CommitStateUnknown | None:
    """What a failed commit's error says of the commit; None where it is none of a commit's.

    Only the error itself is asked, never its causes: those may be of an earlier try. At a
    ConcurrentTransactionException a copy of this very batch came first: a rerun is skipped.
    """
    if isinstance(error, CommitRefused | CommitStateUnknown):
        return error
    text = f"{type(error).__name__} {error}"
    if _UNKNOWN in text:
        return CommitStateUnknown(text[:500], remedy="Commit again: that finds out")
    if any(kind.__module__ == _CONFLICTS for kind in type(error).__mro__):
        return CommitRefused(text[:500])
    return None


def already_there(error: BaseException) -> bool:
    """Whether a table was not made since there is one, made before or just now by another; or a folder with something.

    The latter may be a table that another process is about to make.
    """
    marks = ("ALREADY_EXISTS", "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION")
    return commit_error(error) is not None or any(mark in str(error) for mark in marks)


def given_up(table: str, times: int, unknown: Exception | None) -> CommitConflict | CommitStateUnknown:
    """What to raise after so many tries to commit to a table; `unknown`: an answer that was lost."""
    if unknown:
        return CommitStateUnknown(f"{table}: no answer to {times} commits ({unknown})"[:500], remedy="Check the disk")
    return CommitConflict(
        f"{table}: refused {times} times in a row",
        remedy="Too many writers in one bucket: use more shards, or fewer replicas",
    )
