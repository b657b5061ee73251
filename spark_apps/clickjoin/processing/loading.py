"""The processor that a pipeline's file names. Its owner derives it from `Processor`, or from `KeyedProcessor`."""

from __future__ import annotations

import json
from inspect import signature
from typing import TYPE_CHECKING

import pyarrow as pa

from clickjoin.model.errors import ClickjoinError, ConfigError
from clickjoin.model.names import named_class
from clickjoin.processing.tables import TYPES
from clickjoin.processors.port import Processor
from clickjoin.schemas.process import STATE

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.config.sections import Process


def require_process(pipeline: Pipeline) -> Process:
    """The section `process` of a pipeline. Errors: ConfigError where it has none."""
    if pipeline.process is None:
        raise ConfigError(
            f"pipeline {pipeline.pipeline} processes nothing by key",
            remedy="Add a section `process` to its file (docs/processing.md)",
        )
    return pipeline.process


def load_processor(process: Process) -> Processor:
    """The processor with its arguments. Errors: ConfigError that says what is wrong with it."""
    name = process.processor
    found = named_class("process.processor", name)
    if not (isinstance(found, type) and Processor in found.__mro__):
        raise ConfigError(
            f"process.processor {name}: is no Processor", remedy="Derive it from clickjoin.processors.Processor"
        )
    try:
        made: Processor = found(**process.args)
    except ClickjoinError:
        raise
    except (TypeError, ValueError) as error:
        raise ConfigError(f"process.args: {name}: {error}", remedy=_arguments(found)) from error
    _require_state(name, made.state)
    if process.corrects and not made.corrects:
        raise ConfigError(
            f"process.late: correct: {name} cannot take late events", remedy="Write `late: keep`, or set its `corrects`"
        )
    return made


def _arguments(cls: type) -> str:
    known = [name for name in signature(cls).parameters if name not in ("args", "kwargs")]
    return f"Its arguments are {', '.join(known)}" if known else "It takes no arguments: remove `args`"


def made_by(process: Process, processor: Processor) -> str:
    """What state depends on, as text: it cannot be gone on with where this differs."""
    bound = signature(type(processor).__init__).bind(processor, **process.args)
    bound.apply_defaults()
    given = {name: value for name, value in bound.arguments.items() if name != "self"}
    fixed = given if processor.fixed is None else {name: given[name] for name in processor.fixed}
    lateness = {"lateness": process.corrects} if process.corrects else {}
    found = {"processor": process.processor, "key": process.key, "args": fixed, "late": process.late, **lateness}
    return json.dumps(found, sort_keys=True, default=str)


def _require_state(name: str, state: pa.Schema) -> None:
    for field in state:
        if str(field.type) not in TYPES:
            raise ConfigError(
                f"process.processor {name}: column {field.name} of its state is {field.type}",
                remedy=f"Use one of {', '.join(TYPES)}",
            )
        if field.name in STATE.names:
            raise ConfigError(
                f"process.processor {name}: column {field.name} of its state is taken", remedy="Give it another name"
            )
