"""Reading a pipeline's file: what is wrong and was meant, folders that must be apart."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pydantic import BaseModel

from clickjoin.config.kafka import Kafka
from clickjoin.config.streams import Delta, Files, OfPipeline
from clickjoin.model.places import is_on_s3

if TYPE_CHECKING:
    from pydantic import ValidationError

    from clickjoin.config import Pipeline

_TIMES = {
    "event_time": "write embedded, uuid7, a column's name, or {column: …, format: …, zone: …}",
    "primary_time": "write embedded, uuid7, a column's name, {column: …, format: …, zone: …}, or {lookback: 2h}",
}


def explain(error: ValidationError) -> str:
    """A line for each wrong field: its name, what is wrong, what it was."""
    return "\n".join(_lines(error))


def _lines(error: ValidationError) -> Iterator[str]:
    items = error.errors(include_url=False)
    unknown = {item["loc"][:-1] for item in items if item["loc"][-1:] == ("kind",) and item["type"] in _CHOICES}
    for item in items:
        if item["loc"][:-1] in unknown and item["loc"][-1] != "kind":
            continue  # what else a source lacks, or has too much, depends on its kind
        place, message = list(item["loc"]), item["msg"].removeprefix("Value error, ")
        if time := next((name for name in _TIMES if name in place[:-1]), None):
            form = place.pop(place.index(time) + 1)  # which of its forms it has is no part of its name
            message = _TIMES[time] if item["type"] in ("string_type", "model_type") and form == "name" else message
        if item["type"] in _CHOICES:
            place += [name for name in [_discriminator(item)] if name]
            message = _no_such_word(item)
        elif item["type"] == "extra_forbidden":
            message = _no_such_field(place)
        elif item["type"] == "missing":
            message = "is missing; add it"
        elif item["type"] == "union_tag_not_found":
            message = _MISSING_KIND
            place.append(_discriminator(item))
        field = ".".join(str(part) for part in _without_tag(place)) or "(whole file)"
        got = f" (got {item['input']!r})" if item["type"] not in _PLAIN else ""
        yield f"  {field}: {message}{got}"


_MISSING_KIND = (
    "is missing; write `kind: files`, and the glob of the files in `path`; or `kind: kafka`, `delta` or `pipeline`"
)
# What people ask for first, and how its records come to be read all the same.
_NOT_READ = {
    ("kinesis", "pulsar", "pubsub"): "a queue is not read itself; let its connector write files of JSON lines",
    ("s3",): "write `kind: files`, and s3://BUCKET/KEYS in `path`",
    ("gs", "gcs", "abfs", "hdfs", "http", "https"): "a remote store is not read itself; mount it, or copy its files",
    ("iceberg", "table", "jdbc", "postgres", "mysql"): "a table is not read itself; export it as Parquet files",
    ("json", "jsonl", "csv", "parquet"): "that is a format: write it as `format`, beside `kind: files`",
}


def _is_kind(item: Mapping[str, Any]) -> bool:
    """Whether an error is about the kind of a source."""
    return "source" in item["loc"] and "kind" in (item["loc"][-1], _discriminator(item))


_CHOICES = ("literal_error", "enum", "union_tag_invalid")
_PLAIN = ("missing", "extra_forbidden", "value_error", "union_tag_not_found", *_CHOICES)


def _without_tag(place: Sequence[str | int]) -> list[str | int]:
    """A place without the kind of a source, by which its form was found."""
    at = place.index("source") + 1 if "source" in place else len(place)
    return [*place[:at], *place[at + 1 :]] if at < len(place) and place[at] in _KINDS else list(place)


_KINDS = ("files", "kafka", "delta", "pipeline")


def _no_such_field(place: Sequence[str | int]) -> str:
    known = fields_at(place[:-1])
    if meant := close_to(str(place[-1]), known):
        return f"no such field (did you mean `{meant}`?)"
    return "no such field; remove it, or check its spelling" + (f": there are {', '.join(known)}" if known else "")


def _no_such_word(item: Mapping[str, Any]) -> str:
    """What to write where only some words are known: the kind of a source, a format."""
    context = item["ctx"]
    known = re.findall(r"'([^']*)'", str(context.get("expected") or context["expected_tags"]))
    got = item["input"].get(_discriminator(item)) if "tag" in context else item["input"]
    meant = close_to(str(got), known)
    words = " or ".join([", ".join(known[:-1]), known[-1]] if known[1:] else known)
    why = next((why for kinds, why in _NOT_READ.items() if str(got).lower() in kinds), "") if _is_kind(item) else ""
    hint = f" (did you mean `{meant}`?)" if meant else f" ({why})" if why else ""
    return f"{got!r} is unknown here; write {words}{hint}"


def _discriminator(item: Mapping[str, Any]) -> str:
    """The field that says which of several forms is meant, where none has that name: it is left out of the place."""
    return str(item.get("ctx", {}).get("discriminator", "")).strip("'")


def absolute(path: str, base: Path) -> str:
    """A path of the file, which may be relative to the file's folder; a place on S3 as it is."""
    return path if is_on_s3(path) else str(base / Path(path.removeprefix("file://")).expanduser())


def clashes(pipeline: Pipeline) -> list[str]:
    """Places that are used for two things, or cannot be used, a line each; all paths absolute."""
    paths = {item.name: _normal(item.source.path) for item in pipeline.inputs if not isinstance(item.source, Kafka)}
    root = Path(os.path.normpath(pipeline.root))
    found = [
        f"lake: {pipeline.lake} lies inside the log folder of {item.section}.source.path {path}"
        for item in pipeline.inputs
        for path in ((paths[item.name],) if isinstance(item.source, Files) else ())
        if is_on_s3(pipeline.lake) == is_on_s3(path)
        if Path(path).parent != Path("/") and _inside(root.parts, Path(path).parent.parts)
    ]
    if set("[]%") & set(pipeline.lake):
        found.append(f"lake: {pipeline.lake} holds [, ] or %, which Delta's writers misread; name the folder otherwise")
    found += _one_log(pipeline, paths)
    found += [
        f"{item.section}.source: is a table of this very pipeline, {path}; name another pipeline, or another table"
        for item in pipeline.inputs
        for path in ((paths[item.name],) if isinstance(item.source, Delta | OfPipeline) else ())
        if path.startswith(f"{_normal(pipeline.root)}/")
    ]
    return found


def _one_log(pipeline: Pipeline, paths: Mapping[str, str]) -> Iterator[str]:
    """What is wrong where both streams read one log."""
    topics = [(item.source.servers, item.source.topic) for item in pipeline.inputs if isinstance(item.source, Kafka)]
    if len(paths) == 2 and paths["primary"] == paths["foreign"]:
        field, log = "path", paths["foreign"]
    elif len(set(topics)) < len(topics):
        field, log = "topic", topics[0][1]
    else:
        return
    if not any(item.where for item in (pipeline.primary, pipeline.foreign) if item):
        yield (
            f"foreign.source.{field}: both streams read {log}; say with `where` which records are whose, such as "
            f"`where: {{type: click}}`, or give each a {field} of its own"
        )
    elif not pipeline.shares_log:
        yield f"foreign.source: both streams read {log}, but not alike; write the same source under both"


def _normal(path: str) -> str:
    return path.rstrip("/") if is_on_s3(path) else os.path.normpath(path)


def _inside(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether some folder above a path, or itself, is one that the glob names."""
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_inside(parts[at:], pattern[1:]) for at in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _inside(parts[1:], pattern[1:])


def close_to(word: str, known: Iterable[str]) -> str:
    """The known word that is most like this one; empty if none is."""
    return next(iter(get_close_matches(word, list(known), n=1)), "")


def fields_at(place: Sequence[str | int], root: type[BaseModel] | None = None) -> list[str]:
    """Fields that a pipeline's file may have at a place, such as `("foreign", "source")`; `root`: of another model."""
    from clickjoin.config.pipeline import Pipeline  # which imports the module that asks

    models = [root or Pipeline]
    for part in place:
        models = _below(models, part)
    return list(dict.fromkeys(field.alias or name for model in models for name, field in model.model_fields.items()))


def _below(models: list[type[BaseModel]], part: str | int) -> list[type[BaseModel]]:
    """Models under a field; under the index of a list, the key of a mapping or the tag of a union: the same ones."""
    fields = [field for model in models for name, field in model.model_fields.items() if part in (name, field.alias)]
    if fields:
        return [model for field in fields for model in _models(field.annotation)]
    tagged = [model for model in models if part in _tags(model)]
    return tagged or models


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for inner in get_args(kind):
        yield from _models(inner)


def _tags(model: type[BaseModel]) -> set[Any]:
    kinds = (field.annotation for field in model.model_fields.values())
    return {tag for kind in kinds if get_origin(kind) is Literal for tag in get_args(kind)}
