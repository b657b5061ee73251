"""The output of one stream: the records' own columns, where the pipeline's file names none.

Each field of the first records, by its name, with the type that they give it; what is nested is JSON text. A lake says
itself which columns it was begun with: a field that comes later is in the whole record, and in no column of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from clickjoin.config.output import Column
from clickjoin.kernel.typed_columns.by_line import derived, fields
from clickjoin.model.errors import ConfigError
from clickjoin.model.field_path import path_text
from clickjoin.model.places import RECORD, RECORDS
from clickjoin.schemas import DEDUPLICATED, JOINED

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader

MOST = 200  # columns: each makes every file of the output, and every commit, larger
_NAME = re.compile(r"[^\W\d_]\w{0,100}")
_FROM = "from stream."  # begins the comment of a column that holds a value of a record
_TAKEN = {*DEDUPLICATED.names, *JOINED.names, RECORD, *RECORDS.values()}


def are_wanted(pipeline: Pipeline) -> bool:
    """Whether a pipeline's file leaves the columns of one stream to its records."""
    return pipeline.stream is not None and not pipeline.output.columns and pipeline.output.records == RECORD


def of_lake(delta: DeltaReader) -> dict[str, Column]:
    """The columns that a lake's output has of the records' own: where their values are, as it is noted beside each."""
    if not delta.exists(JOINED.name):
        return {}
    said = {field.name: str(field.metadata.get("comment", "")) for field in delta.open(JOINED.name).schema().fields}
    return {name: _column(text.removeprefix("from ")) for name, text in said.items() if text.startswith(_FROM)}


def of_records(texts: Sequence[str], pipeline: Pipeline) -> dict[str, Column]:
    """The columns of some records (JSON text), in order. Errors: ConfigError where there are none, or too many."""
    if not texts:
        raise ConfigError(
            "stream: it holds no good record yet to take the output's columns from",
            remedy="Start it once there is one (`clickjoin validate` says why it holds none), or name them in "
            "output.columns, with their types",
        )
    known = {"event_id"} if pipeline.claimed.event_id == ("event_id",) else set()  # the output's own holds the same
    found: dict[str, Column] = {}
    for field in dict.fromkeys(name for text in texts for name in fields(text) if name not in known):
        kind, name = derived(texts, (field,)), next(_free(field, {name.lower() for name in found}), None)
        if kind and name:
            found[name] = _column(path_text(("stream", field)), kind)
    if len(found) > MOST:
        raise ConfigError(
            f"stream: its records have {len(found)} fields, and the output takes {MOST} of their own at most",
            remedy="Name those that are wanted in output.columns; the whole record is kept as well",
        )
    return found


def _column(place: str, kind: str | None = None) -> Column:
    return Column.model_validate({"from": place, "type": kind})


def _free(field: str, known: set[str]) -> Iterator[str]:
    """Names that a field's column may have."""
    for name in (field, f"{RECORD}_{field}"):
        if _NAME.fullmatch(name) and name.lower() not in known | _TAKEN:
            yield name
