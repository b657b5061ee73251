"""Checks of a pipeline before it runs, beyond the shape of its file: its lake, its adapter, and some of its records."""

from __future__ import annotations

import json
import re
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clickjoin.config import Files, Kafka, columns_of
from clickjoin.engines.choose import open_tables
from clickjoin.event_store.bad_input import FEWEST, SHARE, hint
from clickjoin.joiner.adapter import adapter_of
from clickjoin.joiner.output_table import require_as_made
from clickjoin.joiner.typed_output import shown_paths, with_types
from clickjoin.kernel.arrays import text_array
from clickjoin.kernel.typed_columns.by_line import has, value_at
from clickjoin.kernel.typed_columns.columns import wrong_values
from clickjoin.kernel.types import delta_type
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.readable import readable
from clickjoin.lake.requirements import refusal
from clickjoin.model.errors import ClickjoinError
from clickjoin.model.field_path import parse_path, path_text
from clickjoin.model.ids import EVENT_KEY, MICROS, micros_of, moment
from clickjoin.model.split import Budget, Problem
from clickjoin.model.where import in_words
from clickjoin.model.zones import hours_off
from clickjoin.processing.loading import load_processor
from clickjoin.registry.shards import require_same
from clickjoin.report.placeholders import placeholders
from clickjoin.report.status import problem_text
from clickjoin.schemas import DEDUPLICATED, JOINED
from clickjoin.sources.open import open_source
from clickjoin.sources.sample import SAMPLE_BYTES, SAMPLE_RECORDS, Key, Sample
from clickjoin.sources.shared_files import REMEDY, SHARED, said, shared_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clickjoin.config import AnySource, Pipeline
    from clickjoin.config.pipeline import Input
    from clickjoin.model.field_path import FieldPath, TypedColumn
    from clickjoin.model.ids import Around

_SHOWN = 12
_OF_NOBODY = (
    "broken-json",
    "not-an-object",
    "bad-csv",
    "invalid-utf8",
    "nul-byte",
    "too-long",
    "tombstone",
    "empty-value",
)
_BEYOND = {
    "quarantine": "which would not be joined: fix what the lines above say",
    "unmatched": "find no primary event: look at lookback or match.within, at ids, and at what is still to come",
    "doubled": "ids come with several times, and would be published once for each: see registry.identity",
}
_DAY, _QUARTER = 86_400 * MICROS, 900 * MICROS
_LOOKED_UP = 100  # primary records, of a day, that are looked for in the lake
_MOST = {"primary": (200_000, 64_000_000), "foreign": (SAMPLE_RECORDS, SAMPLE_BYTES)}  # records, bytes


@dataclass
class Validation:
    """What a look at a pipeline has shown. `problems`: what is wrong, a sentence each.

    `samples`: by stream the records that were looked at; `sections`: the stream's section of the file; `matches`: how
    many of the foreign ones find their primary; `shares`: figures that have a limit in section `validation`.
    """

    problems: list[str] = field(default_factory=list)
    samples: dict[str, Sample] = field(default_factory=dict)
    sections: dict[str, str] = field(default_factory=dict)
    matches: Matches | None = None
    shares: dict[str, float] = field(default_factory=dict)


def validate(pipeline: Pipeline) -> Validation:
    """Look at a pipeline's lake, adapter and logs; nothing is written."""
    found = Validation([f"lake {why}"] if (why := refusal(pipeline.root)) else _of_lake(pipeline))
    found.problems += (of_adapter := _of_adapter(pipeline))
    whole = [_of_source(item, found) for item in pipeline.inputs]
    if shared := shared_by(pipeline):
        found.problems.append(f"foreign.source.path: {said(shared)} {SHARED}. {REMEDY}")
    found.problems += _of_elements(pipeline, found.samples)
    found.problems += [] if found.problems or not pipeline.primary else _of_landed(pipeline, found.samples)
    found.problems += [] if of_adapter else [*_of_columns(pipeline, found.samples), *_of_process(pipeline)]
    whole_look = all(sample.good for sample in found.samples.values()) and len(found.samples) == len(pipeline.inputs)
    if pipeline.foreign and whole_look:
        found.matches = match(found.samples["primary"], found.samples["foreign"], pipeline.around, whole=whole[0])
        if problem := found.matches.problem:
            found.problems.append(problem)
    _judge(pipeline, found, whole=bool(whole) and whole[0])
    return found


def _judge(pipeline: Pipeline, found: Validation, *, whole: bool) -> None:
    """Note shares of the samples, and which of them are beyond their limits. `whole`: all primary events were read."""
    found.shares = _shares(pipeline, found, whole=whole)
    keys = {name: sample.keys for name, sample in found.samples.items()}
    found.problems += placeholders(keys, found.sections, by_lookback=pipeline.around is not None)
    if found.problems:
        return  # what is wrong with all of the records is said
    for name, share in found.shares.items():
        limit = getattr(pipeline.validation, kind := name.rpartition(" ")[2])
        if share > limit:
            found.problems.append(
                f"{name}: {share:.1%} of the sample, {_BEYOND[kind]} (validation.{kind} is {limit:.1%})"
            )


def _shares(pipeline: Pipeline, found: Validation, *, whole: bool) -> dict[str, float]:
    read = {name: sample for name, sample in found.samples.items() if sample.read}
    shares = {f"{found.sections[name]} quarantine": 1 - sample.good / sample.read for name, sample in read.items()}
    if found.matches and found.matches.foreign and whole:
        shares["unmatched"] = 1 - found.matches.found / found.matches.foreign
    keys = found.samples["foreign"].keys if "foreign" in found.samples else ()
    if keys and not pipeline.by_id:
        times = Counter(name for name, _ in {key[:2] for key in keys})
        shares["doubled"] = sum(count > 1 for count in times.values()) / len(times)
    return shares


def _of_lake(pipeline: Pipeline) -> list[str]:
    delta = DeltaReader(pipeline.root)
    try:
        if delta.exists("shard_timeline"):
            require_same(delta, pipeline)
    except ClickjoinError as error:
        return [str(error)]
    return []


def _of_landed(pipeline: Pipeline, samples: Mapping[str, Sample]) -> list[str]:
    """That the lake's primary rows were read by another zone than the file has now: what has landed keeps its time."""
    keys, delta = samples["primary"].keys, DeltaReader(pipeline.root)
    keys = tuple(key for key in keys if abs(key.event_time - keys[0].event_time) < _DAY)[:_LOOKED_UP]
    if not keys or not delta.exists("primary"):
        return []
    own = [key.event_time for key in keys]
    spans: list[Any] = [("event_time", ">=", moment(min(own) - _DAY)), ("event_time", "<=", moment(max(own) + _DAY))]
    try:
        with readable(delta.root, "primary"):
            rows = delta.read("primary", [*spans, ("event_id", "in", [key.event_id for key in keys])], [*EVENT_KEY])
    except ClickjoinError as error:
        return [str(error)]
    times: dict[str, set[int]] = defaultdict(set)
    for row in rows.to_pylist():
        times[row["event_id"]].add(micros_of(row["event_time"]))
    gaps = [min(times[key.event_id]) - key.event_time for key in keys if len(times[key.event_id]) == 1]
    if len(gaps) < FEWEST or len(set(gaps)) > 1 or not gaps[0] or gaps[0] % _QUARTER:
        return []
    off = f"{len(gaps)} sampled records have landed, {abs(gaps[0]) / 3600 / MICROS:g} h off what the file says now"
    return [f"primary.event_time: {off}: landed rows keep their time; begin another `pipeline`"]


def _of_adapter(pipeline: Pipeline) -> list[str]:
    try:
        adapter = adapter_of(with_types(pipeline, DeltaReader(pipeline.root)))
        for kind in adapter.columns.values():
            delta_type(kind)
        delta = open_tables(pipeline)
        require_as_made(delta, pipeline)
        if delta.exists(JOINED.name):
            delta.require_addable(JOINED.name, adapter.columns, pipeline.output.whose)
    except ClickjoinError as error:
        return [str(error)]
    return []


def _of_process(pipeline: Pipeline) -> list[str]:
    """A processor that cannot be made, and parts of the key that no column of the output holds."""
    if pipeline.process is None:
        return []
    try:
        load_processor(pipeline.process)
    except ClickjoinError as error:
        return [str(error)]
    own = (DEDUPLICATED if pipeline.stream else JOINED).names
    columns = [*own, *adapter_of(with_types(pipeline, DeltaReader(pipeline.root))).columns]
    return [
        f"process.key: {path_text(path)}: the output has no column {path[0]}; it has {', '.join(columns)}"
        for path in pipeline.process.paths
        if path[0] not in columns
    ]


def _of_columns(pipeline: Pipeline, samples: Mapping[str, Sample]) -> list[str]:
    """Columns of the output whose paths no record has, or whose type many values do not fit."""
    columns = with_types(pipeline, DeltaReader(pipeline.root)).output.columns
    typed = [column.typed(name) for name, column in columns.items()]
    looked = [(column, samples[column.stream].records) for column in typed if column.stream in samples]
    return [problem for column, texts in looked if texts and (problem := _of_column(pipeline, column, texts))]


def _of_column(pipeline: Pipeline, column: TypedColumn, texts: Sequence[str]) -> str | None:
    name = f"output.columns.{column.name}"
    if not has(texts, column.path):
        return f"{name}: none of {len(texts)} records has {column.source}; they have {shown_paths(texts)}"
    wrong = wrong_values(text_array(texts, pa.string()), [column])
    if len(wrong) <= pipeline.validation.misfits * len(texts):
        return None
    return f"{name}: {len(wrong)} of {len(texts)} values do not fit, such as: {next(iter(wrong.values()))[1]}"


def _nothing(source: AnySource) -> str:
    """What to say of a source that holds no record."""
    if isinstance(source, Files):
        return f"path {source.path}: no file with a whole record matches; check folder and pattern"
    if isinstance(source, Kafka):
        return f"topic {source.topic}: it holds no message from `from` on; check topic and servers"
    return f"path {source.path}: it has no row yet"


def _of_source(item: Input, found: Validation) -> bool:
    """Note what a look at a stream shows; whether all of its records were read."""
    most, size = _MOST[item.role]
    source = open_source(item.source, keep=False)
    # Of a log with other records beside the stream's, more has to be looked at.
    plan = source.plan({}, Budget(*(_MOST["primary"] if item.stream.where else (most, size))))
    problems = [f"{item.section}.source: {_text(problem)}" for problem in plan.problems]
    if not plan.splits:
        found.problems += problems or [f"{item.section}.source.{_nothing(item.source)}"]
        return False
    sample = source.sample(plan.splits, item.spec(_now()), most)
    found.samples[item.name], found.sections[item.name] = sample, item.section
    problems += [f"{item.section}.source: {why}" for why in sample.unread]
    if item.stream.where and not sample.good and all(bad.reason in _OF_NOBODY for bad in sample.bad):
        wanted = in_words(item.stream.where)
        problems.append(f"{item.section}.where: no record that was looked at is this stream's ({wanted})")
    else:
        problems += _of_records(item, sample)
    found.problems += problems
    return not plan.backlog_events and sample.read < most


def _text(problem: Problem) -> str:
    return problem_text(problem.kind, problem.path, problem.detail).removeprefix("problem: ")


def _of_records(item: Input, seen: Sample) -> list[str]:
    """What none of some records has: that is the file's fault, and not the records'."""
    share = SHARE if seen.read >= FEWEST else 1
    if not seen.read or seen.read - seen.good < share * seen.read:
        return []
    has = ", ".join(seen.fields[:_SHOWN]) + (", …" if len(seen.fields) > _SHOWN else "")
    known = {_first(name) for name in seen.fields}
    named = [(field, name) for field, names in columns_of(item.stream).items() for name in names]
    missing = [(field, name) for field, name in named if _first(name) not in known]
    if missing and seen.fields:
        return [
            f"{item.section}.{field}: none of {seen.read} records has a field `{name}`; they have {has}"
            for field, name in missing
        ]
    whole = f"{seen.read - seen.good} of {seen.read} records that were looked at would go to quarantine"
    said = f"{item.section}: {whole}, most of them as {seen.bad[0].reason}: {seen.bad[0].detail}"
    return [said + hint(seen.bad[0].reason)]


def _of_elements(pipeline: Pipeline, samples: Mapping[str, Sample]) -> list[str]:
    """That `primary_id` is in one element of an array, and others name other primary events, which are not joined."""
    if not pipeline.foreign or "foreign" not in samples:
        return []
    records = [json.loads(text) for text in samples["foreign"].records]
    found = []
    for path in map(parse_path, pipeline.foreign.primary_id or ()):
        more = sum(_names_several(record, path) for record in records)
        if more > pipeline.validation.quarantine * len(records):
            found.append(
                f"foreign.primary_id: {path_text(path)} is of one element, and {more} of {len(records)} sampled "
                "records have others with another value there, which are not looked up; where each element is an "
                "event, name the array in foreign.source.records"
            )
    return found


def _names_several(record: Any, path: FieldPath) -> bool:
    at = next((at for at, step in enumerate(path) if isinstance(step, int)), None)
    elements = value_at(record, path[:at]) if at is not None else None
    if at is None or not isinstance(elements, list):
        return False
    return len({str(value) for one in elements if (value := value_at(one, path[at + 1 :])) is not None}) > 1


def _first(name: str) -> str:
    """A path as it is in a sample, which has the first element of each array."""
    return re.sub(r"\[\d+\]", "[0]", name)


def _now() -> int:
    return int(time.time() * MICROS)


@dataclass(frozen=True)
class Matches:
    """Of `foreign` sampled events `found` find their primary event among `primary` ones; `problem` if none ever can.

    `several`: those that find more than one of an id within the lookback; the latest is joined.
    """

    foreign: int
    found: int
    primary: int
    problem: str = ""
    several: int = 0


def match(primary: Sample, foreign: Sample, around: Around | None, *, whole: bool) -> Matches:
    """Look the sampled foreign events up among the primary ones. `whole`: these are all that there are.

    `around`: as of a pipeline.
    """
    times: dict[str, set[int]] = defaultdict(set)
    by_key = around is not None and bool(around.pick)
    for key in primary.keys:
        if name := key.primary_id if by_key else key.event_id:
            times[name].add(key.event_time)
    each = [_finds(key, times, around) for key in foreign.keys]
    found = sum(count > 0 for count in each)
    problem = "" if found else _of_zone(foreign.keys, times, around, fewest=1 if whole else FEWEST)
    if not found and not problem and whole:
        problem = _why_none(foreign.keys, primary.keys, times, around)
    several = 0 if by_key else sum(count > 1 for count in each)
    return Matches(len(foreign.keys), found, len(primary.keys), problem, several)


def _finds(key: Key, times: Mapping[str, set[int]], around: Around | None) -> int:
    """How many primary events it can be joined with."""
    there = times.get(key.primary_id or "", ())
    if around is None:
        return int(key.primary_time in there)
    return sum(key.event_time - around.back <= at <= key.event_time + around.ahead for at in there)


def _of_zone(foreign: tuple[Key, ...], times: Mapping[str, set[int]], around: Around | None, fewest: int) -> str:
    """That ids agree and primary events lie whole or half hours after their clicks, if at least so many do."""
    known = [(key.event_time, times[key.primary_id or ""]) for key in foreign if key.primary_id in times]
    gaps = [(min(there, key=lambda at: abs(at - own)) - own) / MICROS for own, there in known if around]
    if len(gaps) < fewest or not (hours := hours_off(gaps)):
        return ""
    field, what = ("match.within", "keys") if around and around.pick else ("primary_time", "ids")
    return (
        f"foreign.{field}: none of {len(foreign):,} foreign events finds its primary event, although {what} agree in "
        f"{len(gaps):,}: the primary events lie about {hours:g} h after their clicks: the `zone` of one stream is "
        "probably wrong"
    )


def _why_none(
    foreign: tuple[Key, ...], primary: tuple[Key, ...], times: Mapping[str, set[int]], around: Around | None
) -> str:
    count = f"none of {len(foreign):,} foreign events finds its primary event among all {len(primary):,} that there are"
    known = next((key for key in foreign if key.primary_id in times), None)
    if known is None and around and around.pick:
        return (
            f"foreign.match.on: {count}: their keys are such as {foreign[0].primary_id!r}, and those of primary events "
            f"such as {primary[0].primary_id!r}"
        )
    if known is None:
        return (
            f"foreign.primary_id: {count}: they name such as {foreign[0].primary_id!r}, and primary ids are such as "
            f"{primary[0].event_id!r}"
        )
    at = moment(min(times[known.primary_id or ""])).isoformat()
    wanted = known.event_time if around else known.primary_time
    when = "its own time is" if around else "it says"
    field, what = ("match.within", "keys") if around and around.pick else ("primary_time", "ids")
    return (
        f"foreign.{field}: {count}, although {what} agree: {known.primary_id!r} is of {at}, and {when} "
        f"{moment(wanted or 0).isoformat()} in {known.event_id!r}"
    )
