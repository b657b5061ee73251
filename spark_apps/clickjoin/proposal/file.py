"""A proposed pipeline's file, with the reason of each guess as a comment, and typed columns of its output."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from clickjoin.config import Files, OfPipeline
from clickjoin.config.sections import Registry
from clickjoin.model.errors import ConfigError
from clickjoin.model.field_path import FieldPath, parse_path, path_text
from clickjoin.model.places import RECORDS, is_on_s3
from clickjoin.model.span import seconds_of, span_text
from clickjoin.proposal.columns import as_time, type_of
from clickjoin.proposal.guess import Choice, Guess, guess_one
from clickjoin.proposal.logs import Log, look
from clickjoin.proposal.one_log import divided, narrowed
from clickjoin.proposal.texts import within
from clickjoin.schemas import JOINED
from clickjoin.sources.shared_files import REMEDY, SHARED, said, shared_files

PRIMARY_RECORDS, FOREIGN_RECORDS = 100_000, 5_000
ONE_LOG_RECORDS = 20_000  # each two kinds of which are tried
_PARTS = {
    "primary": "looked up: queries, impressions",
    "foreign": "looks up: clicks",
    "stream": "each event of it is published once",
}

_ENGINE = "engine: spark  # or arrow: lower latency, on a disk or S3 of your own"


@dataclass(frozen=True)
class Proposal:
    """The text of a pipeline's file, and by field what is proposed, how sure, and why."""

    text: str
    choices: dict[str, Choice]


def propose(primary: str, foreign: str, folder: Path, called: str = "clicks") -> Proposal:
    """Look at the logs that two globs name, and write a pipeline's file for them; all paths are from `folder`.

    Where both are the same glob, its records are divided by a field. `table:PATH` is a Delta table, `pipeline:NAME` the
    output of another pipeline in the lake of this one.
    Errors: ConfigError where a glob names no file with a whole record.
    """
    logs, found = _looked(_place(folder, primary), _place(folder, foreign), str(folder / "lake"))
    identity = found.foreign.get("identity")
    foreign_fields = {name: choice for name, choice in found.foreign.items() if name != "identity"}
    streams = {"primary": found.primary, "foreign": foreign_fields}
    choices = {f"{name}.{field}": choice for name, fields in streams.items() for field, choice in fields.items()}
    logs = _only_used(logs, streams)
    lines = [
        "# Proposed from the logs by `clickjoin init --from-logs`. Check what is not sure, then `clickjoin validate`.",
        f"pipeline: {called}",
        f"lake: {_quoted(str(folder / 'lake'))}",
        _ENGINE,
        *(line for name, log in logs.items() for line in _stream(name, log, streams[name])),
        *_retention(found.foreign["primary_time"].value if "primary_time" in found.foreign else None),
        *_registry(identity),
        *_output(logs, streams),
    ]
    return Proposal("\n".join(lines) + "\n", choices | ({"registry.identity": identity} if identity else {}))


def _registry(identity: Choice | None) -> list[str]:
    return [f"registry: {{identity: {identity.value}}}  # {identity.sure}: {identity.why}"] if identity else []


def _looked(primary: str, foreign: str, lake: str) -> tuple[dict[str, Log], Guess]:
    """The logs of both streams, and what is proposed for them; of one log its records of either kind."""
    if primary == foreign:
        return divided(look(primary, ONE_LOG_RECORDS, lake))
    if shared := shared_files(primary, foreign):
        raise ConfigError(f"{said(shared)} {SHARED}", remedy=REMEDY)
    logs = {"primary": look(primary, PRIMARY_RECORDS, lake), "foreign": look(foreign, FOREIGN_RECORDS, lake)}
    return narrowed(logs["primary"], logs["foreign"])


def _retention(primary_time: Any) -> Iterator[str]:
    """How long primary events are kept, where the default is not twice as long as clicks look back."""
    if isinstance(primary_time, dict) and "lookback" in primary_time:
        back, kept = seconds_of(primary_time["lookback"]), Registry().retention
        if 2 * back > kept:
            yield f"retention: {{primary: {span_text(back + kept)}}}  # lookback, and {span_text(kept)} for late clicks"


def _only_used(logs: Mapping[str, Log], streams: Mapping[str, Mapping[str, Choice]]) -> dict[str, Log]:
    """The logs without those fields of JSON in which nothing lies that is proposed: they stay texts."""
    used = {
        name: [column for one in fields.values() for column in _columns(one.value)] for name, fields in streams.items()
    }
    shared = len(logs) == 2 and len({log.source for log in logs.values()}) == 1
    every = [column for columns in used.values() for column in columns]
    return {name: _with_used(log, every if shared else used[name]) for name, log in logs.items()}


def _with_used(log: Log, used: Collection[str]) -> Log:
    around = log.source.keys_of_records if isinstance(log.source, Files) else ()
    kept = [text for text, keys in log.texts.items()
            if keys == around[: len(keys)] or any(within(name, [keys]) for name in used)]  # fmt: skip
    dropped = {text: keys for text, keys in log.texts.items() if text not in kept}
    if not dropped:
        return log
    columns = {name: values for name, values in log.columns.items() if not within(name, list(dropped.values()))}
    return replace(log.with_texts(kept), columns=columns | dict.fromkeys(dropped, ["{}"] * log.rows))


def _columns(value: Any) -> Iterator[str]:
    """Columns that a proposed value names: an id's, a time's, a key's, a condition's."""
    if isinstance(value, dict):
        named = value.get("column") or value.get("on") or list(value)
        yield from named.values() if isinstance(named, dict) else [named] if isinstance(named, str) else named
    elif isinstance(value, tuple):
        yield from value
    else:
        yield str(value)


def propose_one(stream: str, folder: Path, called: str = "events") -> Proposal:
    """Look at the logs of one stream, and write a file for a pipeline that publishes each of its events once.

    Errors: as of `propose`.
    """
    log = look(_place(folder, stream), PRIMARY_RECORDS, str(folder / "lake"))
    found = guess_one(log)
    identity = found.get("identity")
    fields = {name: choice for name, choice in found.items() if name != "identity"}
    log = _only_used({"stream": log}, {"stream": fields})["stream"]
    lines = [
        "# Proposed from the logs by `clickjoin init --stream`. Check what is not sure, then `clickjoin validate`.",
        f"pipeline: {called}",
        f"lake: {_quoted(str(folder / 'lake'))}",
        _ENGINE,
        *_stream("stream", log, fields),
        *_registry(identity),
    ]
    choices = {f"stream.{name}": choice for name, choice in fields.items()}
    return Proposal("\n".join(lines) + "\n", choices | ({"registry.identity": identity} if identity else {}))


def _place(folder: Path, pattern: str) -> str:
    kind, _, path = pattern.partition(":")
    if kind == "table":
        return f"table:{_place(folder, path)}"
    return pattern if is_on_s3(pattern) or kind == "pipeline" else str(folder / pattern)


def _stream(name: str, log: Log, fields: dict[str, Choice]) -> Iterator[str]:
    part = _PARTS[name]
    bad = f", {log.bad:,} lines are no records" if log.bad else ""
    yield f"{name}:  # {part}; {log.rows:,} records were sampled{bad}"
    left = {"kind", "lake"} | ({"json_columns"} if isinstance(log.source, OfPipeline) else set())
    source = log.source.model_dump(exclude_none=True, exclude_defaults=True, exclude=left, by_alias=True)
    written = (f"{key}: {_listed(value)}" for key, value in {"kind": log.source.kind, **source}.items())
    yield f"  source: {{{', '.join(written)}}}"
    for field, choice in fields.items():
        yield f"  {field}: {flow(choice.value)}  # {choice.sure}: {choice.why}"


def _output(logs: dict[str, Log], streams: dict[str, dict[str, Choice]]) -> Iterator[str]:
    match = [streams["foreign"]["match"]] if "match" in streams["foreign"] else []
    used = {
        name: {column for choice in (*fields.values(), *match) for column in _columns(choice.value)}
        for name, fields in streams.items()
    }
    columns = proposed_columns(logs, used)
    if columns:
        yield "output:  # table `joined` has these beside ids and times; a value that does not fit is null, and counted"
        yield "  columns:"
    for name, (source, kind) in columns.items():
        yield f"    {flow(name)}: {flow({'from': source, 'type': kind})}"
    if columns:
        yield "  records: both  # keep the whole records as JSON too: none | foreign | primary | both"


def flow(value: Any) -> str:
    """A value as it is written in YAML on one line; a list of one as that one."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return flow(value[0]) if len(value) == 1 else f"[{', '.join(map(flow, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return text if text.isidentifier() and yaml.safe_load(text) == text else _quoted(text)


def _listed(value: Any) -> str:
    """The same of a setting that takes lists alone, be there one in it."""
    return f"[{', '.join(map(flow, value))}]" if isinstance(value, list | tuple) else flow(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


MOST = 20
_TAKEN = {*JOINED.names, *RECORDS.values()}


def proposed_columns(logs: dict[str, Log], used: Mapping[str, Collection[str]]) -> dict[str, tuple[str, str]]:
    """Columns of the output by name: where each value is, and its type; at most MOST of each stream.

    `used`: by stream, the columns that are ids and times already.
    """
    found: dict[str, tuple[str, str]] = {}
    for stream in ("foreign", "primary"):
        log = logs[stream]
        ours = (*JOINED.names, *used[stream]) if isinstance(log.source, OfPipeline) else used[stream]
        free = [name for name, values in log.columns.items() if name not in ours and _says(values)]
        for name in free[:MOST]:
            path = (name,) if log.is_csv and not name.startswith("`") else parse_path(name)
            if column := _column_name(stream, path, found):
                found[column] = (path_text((stream, *path)), _type(name, log))
    return found


def _says(values: list[object]) -> bool:
    """Whether a column holds anything, and no object or array that is empty."""
    given = [value for value in values if value is not None]
    return any(value != "" for value in given) and not any(isinstance(value, dict | list) for value in given)


def _type(name: str, log: Log) -> str:
    values = log.columns[name]
    time = as_time(name, values)
    # A time in a form of its own stays text: the column's type reads ISO 8601 and numbers.
    return "TIMESTAMP" if time and time.named and time.form is None else type_of(values, as_text=log.is_csv)


def _column_name(stream: str, path: FieldPath, taken: Collection[str]) -> str | None:
    """A name for a value: its last key, with the stream before it where that is taken."""
    last = next((step for step in reversed(path) if isinstance(step, str)), "")
    name = re.sub(r"\W+", "_", last).strip("_").lower()
    for candidate in _column_names(stream, path, name):
        if candidate and candidate[0].isalpha() and candidate not in taken and candidate not in _TAKEN:
            return candidate[:128]
    return None


def _column_names(stream: str, path: FieldPath, name: str) -> Iterator[str]:
    yield name
    yield f"{stream}_{name}"
    yield re.sub(r"\W+", "_", f"{stream}_{path_text(path)}").strip("_").lower()
