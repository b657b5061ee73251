"""A chain of pipelines: how each stands, an event's way through all, and what a rebuild changes downstream."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from clickjoin.chain.links import Link, chain_of, links_of
from clickjoin.chain.rests_on import rests_on
from clickjoin.chain.source import by_its_time
from clickjoin.config import OfPipeline, Pipeline
from clickjoin.kernel.parquet_lines import lines_of, type_hints
from clickjoin.kernel.read_lines import read_numbered
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.readable import ReadableTables
from clickjoin.model.errors import ClickjoinError, LakeError
from clickjoin.model.ids import MICROS
from clickjoin.model.names import RAW
from clickjoin.model.span import Span
from clickjoin.report.explain import explain
from clickjoin.report.status import backlog, replicas

if TYPE_CHECKING:
    from clickjoin.config.pipeline import Input


def chain_status(pipelines: Sequence[Pipeline]) -> list[dict[str, Any]]:
    """The pipelines that the first of some is linked to, and itself, upstreams first; nothing where it stands alone.

    Of each: `pipeline`; `reads`: by stream the upstream; `joined` rows; `watermark` of its output, and `why` it is not
    further or not known; `unread`: by stream rows of the upstream that the replica which has come furthest has not
    planned; `problem`, if it cannot be read.
    """
    links = links_of(pipelines)
    chain = chain_of(pipelines[0], links)
    return [_of(pipeline, links) for pipeline in chain] if len(chain) > 1 else []


def _of(pipeline: Pipeline, links: Sequence[Link]) -> dict[str, Any]:
    reads = {link.stream: link.upstream.pipeline for link in links if link.reader.root == pipeline.root}
    found: dict[str, Any] = {"pipeline": pipeline.pipeline, "reads": reads}
    delta = ReadableTables(pipeline.root)
    try:
        mark = rests_on(pipeline)
        return found | {
            "joined": delta.rows("joined"),
            "watermark": mark.time,
            "why": mark.why,
            "unread": _unread(pipeline, delta, reads),
        }
    except ClickjoinError as error:
        return found | {"joined": 0, "watermark": None, "why": "", "unread": {}, "problem": str(error)}


def _unread(pipeline: Pipeline, delta: DeltaReader, reads: dict[str, str]) -> dict[str, int]:
    own = [name for name in replicas(delta) if not name.startswith(RAW)] if reads else []
    each = [backlog(pipeline, delta, name)["inputs"] for name in own or ["main"]] if reads else []
    return {stream: min(inputs[stream]["backlog_events"] for inputs in each) for stream in reads}


_MOST = 10  # events that name one primary event
_NAMING = ("joined", "pending", "unjoinable", "filtered", "expired")


def explain_chain(pipelines: Sequence[Pipeline], event_id: str) -> dict[str, Any]:
    """What `explain` finds in the first of some pipelines, and `chain`: the same of each other one that is linked.

    There `pipeline` says whose it is, and `how` what it is to the event before it. Upstreams come first.
    """
    first = pipelines[0]
    whole = _Way(links_of(pipelines), (first.root, event_id))
    found = explain(first, DeltaReader(first.root), event_id)
    whole.up(first, found)
    above = whole.take()
    whole.down(first, event_id)
    return found | {"chain": [*reversed(above), *whole.take()]}


class _Way:
    def __init__(self, links: Sequence[Link], begun: tuple[str, str]) -> None:
        self._links, self._seen = links, {begun}
        self._found: list[dict[str, Any]] = []

    def take(self) -> list[dict[str, Any]]:
        """What was found since the last time."""
        found, self._found = self._found, []
        return found

    def look(self, pipeline: Pipeline, event_id: str, how: str) -> dict[str, Any] | None:
        """What a pipeline knows of an event; None where it was asked before, or has no tables yet."""
        if (pipeline.root, event_id) in self._seen:
            return None
        self._seen.add((pipeline.root, event_id))
        try:
            found = explain(pipeline, ReadableTables(pipeline.root), event_id)
        except LakeError:
            return None
        return {"pipeline": pipeline.pipeline, "how": how, **found}

    def up(self, pipeline: Pipeline, found: Mapping[str, Any]) -> None:
        """Follow the records of an event to the pipelines whose output they are."""
        steps = [*found["history"], *_primaries(pipeline, found["history"])]
        for link in self._links:
            if link.reader.root != pipeline.root:
                continue
            for step in steps:
                record = _record(step) if step["table"] == link.stream else None
                name = record.get("event_id") if record else None
                if isinstance(name, str) and (more := self.look(link.upstream, name, f"the {link.stream} record")):
                    self._found.append(more)
                    self.up(link.upstream, more)

    def down(self, pipeline: Pipeline, event_id: str) -> None:
        """Follow an event's output to the pipelines that read it."""
        for link in self._links:
            if link.upstream.root != pipeline.root:
                continue
            for name in _names(link, event_id):
                if more := self.look(link.reader, name, f"its {link.stream} record is this event's output"):
                    self._found.append(more)
                for other in _naming(link.reader, name) if link.stream == "primary" else ():
                    if more := self.look(link.reader, other, "names it as its primary event"):
                        self._found.append(more)
                        self.down(link.reader, other)
                if link.stream == "foreign":
                    self.down(link.reader, name)


def _primaries(pipeline: Pipeline, history: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of the primary events that an event was joined to."""
    delta = ReadableTables(pipeline.root)
    for name in {step["primary_id"] for step in history if step["table"] == "joined" and "primary_id" in step}:
        for row in delta.read("primary", [("event_id", "=", name)]).to_pylist():
            yield {"table": "primary", **row}


def _record(step: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        found = json.loads(step["payload"])
    except (KeyError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _names(link: Link, event_id: str) -> list[str]:
    """The ids that an upstream's output has as records of the one that reads it."""
    item: Input = next(item for item in link.reader.inputs if item.name == link.stream)
    assert isinstance(item.source, OfPipeline)
    try:
        rows = ReadableTables(link.upstream.root).read("joined", [("event_id", "=", event_id)])
    except LakeError:
        return []
    lines = [line for batch in rows.to_batches() for line in lines_of(batch, item.source.json_columns)]
    if not lines:
        return []
    spec, decimals = item.spec(int(time.time() * MICROS)), type_hints(rows.schema).without_times()
    records = read_numbered("", "", spec, np.arange(len(lines)), lines, decimals)
    return [name for batch in records for name in batch["event_id"].to_pylist() if name]


def _naming(pipeline: Pipeline, event_id: str) -> list[str]:
    """Events of a pipeline that name a primary event."""
    delta = ReadableTables(pipeline.root)
    found: dict[str, None] = {}
    for name in _NAMING:
        try:
            rows = delta.read(name, [("primary_id", "=", event_id)], ["event_id"])
        except LakeError:
            return []
        found |= dict.fromkeys(rows["event_id"].to_pylist()[:_MOST])
    return list(found)[:_MOST]


def downstream(pipelines: Sequence[Pipeline], span: Span) -> list[dict[str, Any]]:
    """The pipelines that read the output of the first of some: `pipeline`, `stream`, `records`, and `text`, a sentence.

    `records`: ids of a range of event time that have landed there; None where its records have other times, or its
    tables cannot be read.
    """
    links = [link for link in links_of(pipelines) if link.upstream.root == pipelines[0].root]
    return [
        {"pipeline": link.reader.pipeline, "stream": link.stream, "records": count, "text": _sentence(link, count)}
        for link in links
        for count in (_landed(link, span),)
    ]


def _landed(link: Link, span: Span) -> int | None:
    item = next(item for item in link.reader.inputs if item.name == link.stream)
    if not by_its_time(item):
        return None
    wanted = [("event_time", ">=", span.low), ("event_time", "<", span.high)]
    try:
        rows = ReadableTables(link.reader.root).read(link.stream, wanted, ["event_id"])
    except LakeError:
        return None
    return int(pc.count_distinct(rows["event_id"]).as_py())


def _sentence(link: Link, count: int | None) -> str:
    known = "records of these dates may have come to it" if count is None else f"{count} of these rows have come to it"
    return (
        f"{link.reader.pipeline} reads this output as its {link.stream} stream: {known}. Those that a rebuild changes "
        "come again and count as repeats; its own output keeps what it was joined with"
    )
