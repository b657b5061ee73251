"""What a pipeline reads, as a list: whatever is done for each stream goes over this."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from clickjoin.model.ids import RecordSpec

if TYPE_CHECKING:
    from clickjoin.config.pipeline import Pipeline
    from clickjoin.config.streams import AnySource, Primary

Role = Literal["primary", "foreign"]


@dataclass(frozen=True)
class Input:
    """One stream of a pipeline: its name, which is that of its table, and the part that it plays in the join.

    `role`: `primary` is looked up, `foreign` looks up. `spec`: how its records are read, by the time when a batch was
    planned (microseconds since 1970). `section`: what it is called in the pipeline's file.
    """

    name: str
    role: Role
    stream: Primary
    spec: Callable[[int], RecordSpec]
    section: str

    @property
    def source(self) -> AnySource:
        """Where its records come from."""
        return self.stream.source


def inputs_of(pipeline: Pipeline) -> tuple[Input, ...]:
    """The streams that a pipeline reads: those that are looked up first.

    Records of one stream alone lie where those of a foreign one do.
    """
    named: dict[Role, tuple[str, Primary | None]] = {
        "primary": ("primary", pipeline.primary),
        "foreign": ("foreign", pipeline.foreign) if pipeline.stream is None else ("stream", pipeline.stream),
    }
    return tuple(
        Input(role, role, stream, partial(pipeline.spec, role), section)
        for role, (section, stream) in named.items()
        if stream is not None
    )
