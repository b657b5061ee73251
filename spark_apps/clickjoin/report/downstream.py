"""What a rebuild of some dates changes for the pipelines that read this one's output: no Spark needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow.compute as pc

from clickjoin.chain.links import Link, links_of
from clickjoin.chain.source import by_its_time
from clickjoin.config import Pipeline
from clickjoin.lake.readable import ReadableTables
from clickjoin.model.errors import LakeError
from clickjoin.model.span import Span


def downstream(pipelines: Sequence[Pipeline], span: Span) -> list[dict[str, Any]]:
    """The pipelines that read the output of the first of some: `pipeline`, `stream`, `records`, and `text`, a sentence.

    `records`: ids of a range of event time that have landed there; None where its records have other times, or its
    tables cannot be read.
    """
    links = [link for link in links_of(pipelines) if link.upstream.root == pipelines[0].root]
    return [
        {"pipeline": link.reader.pipeline, "stream": link.stream, "records": count, "text": _text(link, count)}
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


def _text(link: Link, count: int | None) -> str:
    known = "records of these dates may have come to it" if count is None else f"{count} of these rows have come to it"
    return (
        f"{link.reader.pipeline} reads this output as its {link.stream} stream: {known}. Those that a rebuild changes "
        "come again and count as repeats; its own output keeps what it was joined with"
    )
