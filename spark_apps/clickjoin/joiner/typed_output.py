"""Types of the output's columns: written in the pipeline's file, else those of `joined`, else what the logs hold."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from clickjoin.joiner import own_columns
from clickjoin.kernel.typed_columns.by_line import derived, paths
from clickjoin.kernel.typed_columns.columns import default_of
from clickjoin.model.errors import ConfigError
from clickjoin.model.ids import MICROS
from clickjoin.model.split import Budget
from clickjoin.schemas import JOINED, RESERVED
from clickjoin.sources.open import open_source
from clickjoin.sources.sample import SAMPLE_BYTES, SAMPLE_RECORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.model.field_path import TypedColumn

_SHOWN = 12
_SQL = {"long": "BIGINT", "integer": "INT"}


def with_types(pipeline: Pipeline, delta: DeltaReader) -> Pipeline:
    """A pipeline whose output columns all have types. Nothing is read where all of them are written down.

    Errors: ConfigError where no record of the logs says which one a column has.
    """
    pipeline = _with_own_columns(pipeline, delta)
    columns = pipeline.output.columns
    if all(column.type for column in columns.values()):
        return pipeline
    there = delta.columns(JOINED.name) if delta.exists(JOINED.name) else {}
    types = {name: _SQL.get(there[name], there[name].upper()) for name in columns if name in there}
    return _typed(pipeline, types | _derived(_typed(pipeline, types)))


def _with_own_columns(pipeline: Pipeline, delta: DeltaReader) -> Pipeline:
    """The pipeline with its records' own columns where they are the output's: those of the lake, or of its records."""
    if not own_columns.are_wanted(pipeline):
        return pipeline
    columns = own_columns.of_lake(delta)
    if not columns:
        texts = sampled(pipeline, {item.name for item in pipeline.inputs}).get("foreign", ())
        columns = own_columns.of_records(texts, pipeline)
    return pipeline.model_copy(update={"output": pipeline.output.model_copy(update={"columns": columns})})


def _typed(pipeline: Pipeline, types: Mapping[str, str]) -> Pipeline:
    return pipeline.model_copy(update={"output": pipeline.output.with_types(types)})


def _derived(pipeline: Pipeline) -> dict[str, str]:
    untyped = [column.typed(name) for name, column in pipeline.output.columns.items() if not column.type]
    samples = sampled(pipeline, {column.stream for column in untyped})
    found = {column.name: derived(samples[column.stream], column.path) for column in untyped}
    if unknown := [column for column in untyped if found[column.name] is None]:
        raise ConfigError(
            "; ".join(_unknown(column, samples[column.stream]) for column in unknown),
            remedy="Write its type, such as {from: …, type: STRING}, or fix its path",
        )
    return {name: kind for name, kind in found.items() if kind}


def _unknown(column: TypedColumn, texts: Sequence[str]) -> str:
    what = f"output.columns.{column.name}: the type of {column.source} is not known"
    if not texts:
        return f"{what}: there are no good records of stream {column.stream} to derive it from"
    return f"{what}: none of {len(texts)} records has a value there; they have {shown_paths(texts)}"


def shown_paths(texts: Sequence[str]) -> str:
    """The paths of some records (JSON text), as a part of a sentence."""
    found = paths(texts)
    return ", ".join(found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "")


def sampled(pipeline: Pipeline, streams: set[str]) -> dict[str, Sequence[str]]:
    """Some good records of streams, the oldest that there are, as JSON text."""
    found: dict[str, Sequence[str]] = {}
    for item in pipeline.inputs:
        if item.name in streams:
            source = open_source(item.source, keep=False)
            splits = source.plan({}, Budget(SAMPLE_RECORDS, SAMPLE_BYTES)).splits
            found[item.name] = source.sample(splits, item.spec(int(time.time() * MICROS))).records if splits else ()
    return found


def require_sound(columns: Sequence[TypedColumn]) -> None:
    """Check names, and defaults against types. Errors: ConfigError."""
    for column in columns:
        if column.name.lower() in RESERVED:
            raise ConfigError(f"output.columns: column {column.name} is taken", remedy="Give it another name")
        if not column.type:
            raise ConfigError(f"output.columns.{column.name}: its type is not known", remedy="Write its type")
        if column.default is not None:
            default = default_of(column)
            if default.misfit[0] or default.values.null_count:
                raise ConfigError(
                    f"output.columns.{column.name}.default: {column.default} does not fit {column.type}",
                    remedy="Write one that does, or remove it",
                )
