"""A pipeline's file with its relative paths made absolute, and its places declared: which store, what output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickjoin.config import one_stream
from clickjoin.config.dates import Backfill
from clickjoin.config.file import absolute
from clickjoin.config.kafka import Kafka
from clickjoin.config.store import S3
from clickjoin.config.tables import OfPipeline
from clickjoin.model.outputs import JOINED, declare_output
from clickjoin.model.places import above_globs, is_on_s3
from clickjoin.model.stores import declare

if TYPE_CHECKING:
    from clickjoin.config.inputs import Input
    from clickjoin.config.pipeline import Pipeline


def declare_places(pipeline: Pipeline) -> None:
    """Have what the file names on S3 lie where its section `s3` says, and the output be called as it is."""
    declare_output(pipeline.root, one_stream.output_name(pipeline))
    for item in pipeline.inputs:
        if isinstance(item.source, OfPipeline) and item.source.output != JOINED:
            declare_output(item.source.root, item.source.output)
    store = pipeline.s3.store if pipeline.s3 != S3() else None
    sources = [_place_of(item) for item in pipeline.inputs if not isinstance(item.source, Kafka)]
    for place in (pipeline.root, *sources, *(pipeline.backfill.roots or ())):
        if is_on_s3(place):
            declare(place, store)


def _place_of(item: Input) -> str:
    """The folder that holds a stream's records; of another pipeline's output its tables, whose state is read too."""
    source = item.source
    return source.root if isinstance(source, OfPipeline) else above_globs(source.path)


def anchored(pipeline: Pipeline, base: Path, default_adapter: str) -> Pipeline:
    """The same with absolute paths: those of its file are relative to the file's folder."""

    def side(stream: Any) -> Any:
        source = stream and stream.source
        if source is None or isinstance(source, Kafka):
            return stream
        if isinstance(source, OfPipeline):
            place = {"lake": absolute(source.lake or pipeline.lake, base)}
        else:
            place = {"path": absolute(source.path, base)}
        return stream.model_copy(update={"source": source.model_copy(update=place)})

    roots = pipeline.backfill.roots
    return pipeline.model_copy(
        update={
            "lake": absolute(pipeline.lake, base),
            "backfill": Backfill(roots=None if roots is None else tuple(absolute(root, base) for root in roots)),
            "output": one_stream.output_with_record(pipeline, default_adapter),
            "stream": side(pipeline.stream),
            "primary": side(pipeline.primary),
            "foreign": side(pipeline.foreign),
        }
    )
