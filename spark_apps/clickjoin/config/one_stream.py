"""A pipeline of one stream, which is deduplicated: what of a file does not go with it, and what its output is called.

Its events are claimed like foreign ones that have found their partner: they lie in the tables of the foreign stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticKnownError

from clickjoin.config.output import DEFAULT_ADAPTER
from clickjoin.model.dags import PARTNERS
from clickjoin.model.places import DEDUPLICATED, JOINED, RECORD

if TYPE_CHECKING:
    from pydantic import ValidationInfo

    from clickjoin.config import Pipeline
    from clickjoin.config.output import Output
    from clickjoin.config.streams import Primary

# For editors: the same that `either` checks.
EITHER: dict[str, Any] = {
    "oneOf": [
        {"required": ["primary", "foreign"], "properties": {"stream": {"type": "null"}}},
        {"required": ["stream"], "properties": {"primary": {"type": "null"}, "foreign": {"type": "null"}}},
    ]
}


def either(value: Primary | None, info: ValidationInfo) -> Primary | None:
    """Check that `primary` and `foreign` are there, or `stream` instead, which comes before them."""
    if "stream" not in info.data:  # it is there, and wrong
        return value
    if value is None and info.data["stream"] is None:
        raise PydanticKnownError("missing")
    if value is not None and info.data["stream"] is not None:
        raise ValueError("one stream has no partner; remove it, or remove `stream` and join the two")
    return value


def clashes_of(pipeline: Pipeline) -> Iterator[str]:
    """What of a file does not go with one stream, or only with one; a sentence each."""
    return _of_one(pipeline) if pipeline.stream else _of_two(pipeline)


def _of_two(pipeline: Pipeline) -> Iterator[str]:
    yield from _of_identity(pipeline, "foreign")
    if "stream" in _streams(pipeline):
        yield "output.columns: stream. is for a pipeline of one stream; write foreign. or primary."
    if pipeline.output.records == RECORD:
        yield f"output.records: {RECORD} is for a pipeline of one stream; write both, foreign, primary or none"


def _streams(pipeline: Pipeline) -> set[str]:
    return {column.source.partition(".")[0] for column in pipeline.output.columns.values()}


def _of_one(pipeline: Pipeline) -> Iterator[str]:
    yield from _of_output(pipeline)
    yield from _of_identity(pipeline, "stream")
    if "retry" in pipeline.model_fields_set:
        yield "retry: an event of one stream waits for nothing, so none is tried again; remove it"
    for name in ("primary", "pending"):
        if name in pipeline.retention.model_fields_set:
            yield f"retention.{name}: one stream has nothing in table `{name}`; remove it"
    if wanted := [name for name in pipeline.airflow.dags or () if name in PARTNERS]:
        yield f"airflow.dags: {', '.join(wanted)} is for streams that wait for a partner; remove it"


def _of_identity(pipeline: Pipeline, stream: str) -> Iterator[str]:
    if pipeline.by_id and pipeline.claimed.event_time == "landed":
        yield (
            f"{stream}.event_time: when a record was read differs between readers, and so cannot age its id; name the "
            "column that says when the event was made (a repeat that is stamped again counts as one event within "
            "registry.repeats)"
        )


def _of_output(pipeline: Pipeline) -> Iterator[str]:
    if _streams(pipeline) - {"stream"}:
        yield "output.columns: a pipeline of one stream has no foreign. or primary. record; write stream. and the path"
    if pipeline.output.records not in ("both", RECORD, "none"):
        yield f"output.records: {pipeline.output.records} is no record of one stream; write {RECORD} or none"
    if pipeline.adapter != DEFAULT_ADAPTER and pipeline.output.records == RECORD:
        yield f"adapter {pipeline.adapter} and output both make the output; remove adapter, or else output"


def output_name(pipeline: Pipeline) -> str:
    """What the output's table is called."""
    return JOINED if pipeline.stream is None else DEDUPLICATED


def output_with_record(pipeline: Pipeline) -> Output:
    """The output with the record of one stream in place of both records, where no adapter makes it."""
    output = pipeline.output
    if pipeline.stream is None or pipeline.adapter != DEFAULT_ADAPTER or output.records != "both":
        return output
    return output.model_copy(update={"records": RECORD})
