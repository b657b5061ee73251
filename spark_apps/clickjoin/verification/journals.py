"""How far every sequence of every replica had come when a reading began, and when it ended.

A batch that was settled by the beginning has nothing under way any more. One that was planned by the end and not
settled at the beginning is in flight: what it has claimed, written or taken away may be half to be seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickjoin.dispatcher.journal import JournalReader, sequences

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader

Key = tuple[str, str]  # replica, sequence
_REDRIVE = "redrive"


@dataclass(frozen=True)
class Journals:
    """By replica and sequence: the last batch `settled` at the beginning, and the last one `planned` at the end."""

    pipeline: str
    settled: Mapping[Key, int]
    planned: Mapping[Key, int]

    def open_tokens(self) -> list[str]:
        """Tokens of all batches in flight."""
        return [
            f"{self.pipeline}/{replica}/{sequence}/{number}"
            for (replica, sequence), last in sorted(self.planned.items())
            for number in range(self.settled.get((replica, sequence), 0) + 1, last + 1)
        ]

    def settled_sql(self) -> str:
        """Whether a landed row is of a settled batch: Spark SQL over columns `replica` and `batch`."""
        joins = [(replica, last) for (replica, sequence), last in sorted(self.settled.items()) if sequence == "join"]
        return " OR ".join(f"(replica = {text(replica)} AND batch <= {last})" for replica, last in joins) or "FALSE"

    def open_sql(self, column: str = "token") -> str:
        """Whether a token's batch is in flight: Spark SQL."""
        tokens = self.open_tokens()
        return f"{column} IN ({', '.join(text(token) for token in tokens)})" if tokens else "FALSE"

    def redriving_sql(self) -> str:
        """Whether a row of `unjoinable` may just be sent round again: its claim goes before the row does."""
        moving = sorted(
            replica
            for (replica, sequence), last in self.planned.items()
            if sequence == _REDRIVE and last > self.settled.get((replica, sequence), 0)
        )
        return f"replica IN ({', '.join(text(replica) for replica in moving)})" if moving else "FALSE"


def text(value: str) -> str:
    """A text as a Spark SQL literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def settled_now(delta: DeltaReader, pipeline: str) -> dict[Key, int]:
    """Last settled batch of every sequence."""
    return {key: JournalReader(delta, pipeline, *key).settled() for key in sequences(delta)}


def planned_now(delta: DeltaReader, pipeline: str) -> dict[Key, int]:
    """Last planned batch of every sequence."""
    return {key: JournalReader(delta, pipeline, *key).planned() for key in sequences(delta)}
