"""How the pipelines of a chain stand, one after the other: no Spark needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clickjoin.chain.links import Link, chain_of, links_of
from clickjoin.chain.rests_on import rests_on
from clickjoin.config import Pipeline
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.readable import ReadableTables
from clickjoin.model.errors import ClickjoinError
from clickjoin.model.names import RAW
from clickjoin.report.backlog import backlog
from clickjoin.report.status import replicas


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
