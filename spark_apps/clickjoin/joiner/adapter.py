"""The adapter that a pipeline's file names. Its owner derives it from `Adapter`, `ArrowAdapter` or `BothRecords`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickjoin.engines.choose import require_adapter
from clickjoin.joiner.typed_output import require_sound
from clickjoin.kernel.adapter import Adapter, ArrowAdapter, BothRecords, TypedOutput, needs_spark
from clickjoin.model.errors import ConfigError
from clickjoin.model.names import named_class
from clickjoin.schemas import RESERVED

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

__all__ = ["Adapter", "ArrowAdapter", "BothRecords", "adapter_of", "load_adapter", "needs_spark"]


def adapter_of(pipeline: Pipeline) -> Adapter:
    """The adapter of a pipeline whose output columns all have types (see with_types). Errors: ConfigError."""
    output, all_touches = pipeline.output, pipeline.match is not None and pipeline.match.pick == "all"
    if output.is_default and not all_touches:
        return require_adapter(pipeline, load_adapter(pipeline.adapter))
    columns = [column.typed(name) for name, column in output.columns.items()]
    require_sound(columns)
    return TypedOutput(columns, output.kept, touches=all_touches)


def load_adapter(name: str) -> Adapter:
    """The adapter that `module:Class` names. Errors: ConfigError that says what is wrong with it."""
    found = named_class("adapter", name)
    if not (isinstance(found, type) and issubclass(found, Adapter)):
        raise ConfigError(f"adapter {name}: is no Adapter", remedy="Derive it from clickjoin.joiner.adapter.Adapter")
    taken = sorted(column for column in found.columns if column.lower() in RESERVED)
    if taken:
        raise ConfigError(f"adapter {name}: columns {', '.join(taken)} are taken", remedy="Give them other names")
    return found()
