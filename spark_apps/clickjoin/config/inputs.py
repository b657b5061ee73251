"""What a pipeline reads, as a list: whatever is done for each stream goes over this."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clickjoin.model.ids import RecordSpec

if TYPE_CHECKING:
    from clickjoin.config.streams import AnySource, Primary

Role = Literal["primary", "foreign"]


@dataclass(frozen=True)
class Input:
    """One stream of a pipeline: its name, which is that of its table, and the part that it plays in the join.

    `role`: `primary` is looked up, `foreign` looks up. `spec`: how its records are read, by the time when a batch was
    planned (microseconds since 1970).
    """

    name: str
    role: Role
    stream: Primary
    spec: Callable[[int], RecordSpec]

    @property
    def source(self) -> AnySource:
        """Where its records come from."""
        return self.stream.source
