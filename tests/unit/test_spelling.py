"""What is meant by a misspelt word of a pipeline's file, in any form that its model can have."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clickjoin.config.file import close_to, explain, fields_at


class Files(BaseModel):
    kind: Literal["files"]
    path: str


class Queue(BaseModel):
    kind: Literal["queue"]
    topic: str


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid")
    source: Annotated[Files | Queue, Field(discriminator="kind")]
    more: list[Files] = []
    named: dict[str, Queue] = {}


@pytest.mark.parametrize(
    ("place", "fields"),
    [
        ((), ["source", "more", "named"]),
        (("source",), ["kind", "path", "topic"]),
        (("source", "queue"), ["kind", "topic"]),
        (("more", 3), ["kind", "path"]),
        (("named", "any"), ["kind", "topic"]),
    ],
)
def test_fields_at_a_place(place: tuple[str | int, ...], fields: list[str]) -> None:
    assert fields_at(place, Whole) == fields


def test_fields_of_a_pipelines_file() -> None:
    assert {"kind", "path", "format"} <= set(fields_at(("foreign", "source")))
    assert fields_at(("foreign", "primary_time")) == ["column", "format", "zone", "lookback", "skew"]


def test_close_words() -> None:
    assert close_to("max_evnts", ["max_bytes", "max_events"]) == "max_events"
    assert close_to("colour", ["max_bytes"]) == ""


def test_an_unknown_form_lists_those_there_are() -> None:
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate({"source": {"kind": "queues", "topic": "t"}})
    assert explain(caught.value) == (
        "  source.kind: 'queues' is unknown here; write files or queue (did you mean `queue`?)"
    )
