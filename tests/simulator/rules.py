"""The rules by which a commit that came first leaves room for another: Spark's, and delta-rs's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulator.tables import Commit, Reading


class Refused(Exception):
    """A commit that Delta refuses; the text is what real Delta says."""

    __module__ = "delta.exceptions.base"  # where delta-spark has its own, by which they are known


class Unanswered(Exception):
    """A commit of which the caller hears nothing: it may have landed."""


def check_spark(winner: Commit, read: Reading, mine: Commit) -> None:
    """Whether a commit that came first leaves room for mine: the order of Delta's ConflictChecker."""
    if winner.metadata:
        raise Refused("[DELTA_METADATA_CHANGED] MetadataChangedException: The metadata of the table has been changed")
    if read.apps & winner.txns.keys():
        raise Refused("[DELTA_CONCURRENT_TRANSACTION] ConcurrentTransactionException: same application")
    # Tables are Serializable by default: what was appended without reading anything counts too.
    for file in winner.adds:
        if any(matches(file.values) for matches in read.predicates):
            raise Refused("[DELTA_CONCURRENT_APPEND] ConcurrentAppendException: Files were added")
    if winner.removes & read.files:
        raise Refused("[DELTA_CONCURRENT_DELETE_READ] ConcurrentDeleteReadException: deleted what was read")
    if winner.removes & mine.removes:
        raise Refused("[DELTA_CONCURRENT_DELETE_DELETE] ConcurrentDeleteDeleteException: deleted twice")


def check_rust(winner: Commit, mine: Commit, read: Reading | None) -> None:
    """The same by delta-rs's rules."""
    if winner.metadata:
        raise Refused("Metadata changed since last commit.")
    if mine.txns.keys() & winner.txns.keys():
        raise Refused("Concurrent transaction failed.")
    if read is None:
        return
    # Unlike Spark it does not see that files were removed where no row was changed.
    for file in winner.adds:
        if any(matches(file.values) for matches in read.predicates):
            raise Refused("Commit failed: a concurrent transaction added new data.")
    if not winner.packs and (winner.removes & read.files or winner.removes & mine.removes):
        raise Refused("Commit failed: a concurrent transaction deleted the same data your transaction deletes.")
