"""Per-key processing of a pipeline's output: which key, which processor, and what becomes of late events."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from clickjoin.config.types import Duration, Strict
from clickjoin.model.errors import ConfigError
from clickjoin.model.field_path import FieldPath, parse_path

_CLASS = r"[\w.]+:\w+"
_SHIPPED = ("TumblingCounts", "SessionWindows", "SpikesAndDips")


def _listed(value: Any) -> Any:
    """`key: item_id` is short for `key: [item_id]`."""
    return (value,) if isinstance(value, str) else value


class Process(Strict):
    """What is done with the events of each key, exactly once, as the output grows."""

    key: Annotated[tuple[str, ...], BeforeValidator(_listed)] = Field(
        min_length=1, description="columns of the output, or paths in one that holds records: primary_record.item_id"
    )
    processor: str = Field(
        "clickjoin.processors:SpikesAndDips", pattern=f"^{_CLASS}$", description="module:Class of a Processor"
    )
    args: Mapping[str, Any] = Field({}, description="arguments of the processor")
    late: Literal["keep", "correct"] = Field(
        "keep",
        description="what comes behind the watermark is kept in table `late`, and changes nothing (keep), or corrects "
        "what was reported by a retraction and a new row (correct)",
    )
    lateness: Duration = Field(
        3600.0, description="of late: correct: how far behind the watermark an event still corrects"
    )
    catch_up: Duration = Field(
        86400.0, description="while unread rows are left, the watermark is so far behind the newest event that was read"
    )

    @field_validator("key")
    @classmethod
    def _sound(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        try:
            for text in value:
                parse_path(text)
        except ConfigError as error:
            raise ValueError(str(error)) from error
        return value

    @field_validator("processor", mode="before")
    @classmethod
    def _with_module(cls, value: Any) -> Any:
        if isinstance(value, str) and not re.fullmatch(_CLASS, value):
            shipped = f", such as clickjoin.processors:{value}" if value in _SHIPPED else ""
            raise ValueError(f"{value!r} is no class of a module: write module:Class{shipped}")
        return value

    @property
    def corrects(self) -> float:
        """How many seconds behind the watermark an event still corrects what was reported; 0: none does."""
        return self.lateness if self.late == "correct" else 0.0

    @property
    def paths(self) -> tuple[FieldPath, ...]:
        """Column of the output, and the path inside it, of each part of the key."""
        return tuple(parse_path(text) for text in self.key)
