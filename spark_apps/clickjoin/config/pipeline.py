"""A pipeline's configuration: one YAML file, validated, with errors that name file, field and remedy."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from clickjoin.config import one_stream
from clickjoin.config.file import absolute, clashes, explain
from clickjoin.config.kafka import Kafka
from clickjoin.config.match import Key, Match, require_room
from clickjoin.config.output import DEFAULT_ADAPTER, Output
from clickjoin.config.quality import Quality
from clickjoin.config.sections import (
    S3,
    Airflow,
    Backfill,
    Batch,
    Close,
    Limits,
    Process,
    Registry,
    Retention,
    Retry,
    Validation,
    Verify,
)
from clickjoin.config.streams import AnySource, Files, Foreign, Lookback, OfPipeline, Primary, TimeColumn
from clickjoin.config.types import Place, Strict, keys_of
from clickjoin.model.dags import PROCESSING
from clickjoin.model.errors import ConfigError
from clickjoin.model.ids import MICROS, Around, RecordSpec, TimeForm
from clickjoin.model.places import JOINED, above_globs, declare, declare_output, is_on_s3
from clickjoin.model.span import span_text
from clickjoin.model.where import Where
from clickjoin.yaml_file import parse

Role = Literal["primary", "foreign"]
_FILES: dict[str, str] = {}  # of pipelines that this process has read, by the folder of their tables


@dataclass(frozen=True)
class Input:
    """One stream of a pipeline: its name, which is that of its table, and the part that it plays in the join.

    `role`: `primary` is looked up, `foreign` looks up. `spec`: how its records are read, by the time when a batch was
    planned (microseconds since 1970). `section`: what it is called in the pipeline's file.
    """

    name: str
    role: Role
    stream: Primary
    spec: Callable[[int], RecordSpec]
    section: str

    @property
    def source(self) -> AnySource:
        """Where its records come from."""
        return self.stream.source


class Pipeline(Strict):
    """One pipeline: what to join, how, and where to."""

    pipeline: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,62}$", description="Name; tables lie in `LAKE/NAME/`.")
    lake: Place = Field(
        description="Folder of this machine, relative to the pipeline's file and not inside a folder of logs, or "
        "`s3://BUCKET/PREFIX`."
    )
    engine: Literal["spark", "arrow"] = Field(
        "spark",
        description="What a batch's steps run on: `spark`, as Spark jobs; `arrow`, in this process or on executors. "
        "The lake keeps the engine that ran last.",
    )
    s3: S3 = S3()
    stream: Primary | None = Field(None, description="One stream to deduplicate, in place of `primary` and `foreign`.")
    primary: Primary | None = Field(
        None, validate_default=True, description="The stream that is looked up. Needed unless `stream` is given."
    )
    foreign: Foreign | None = Field(
        None,
        validate_default=True,
        description="The stream that looks up: by id, or by a key and time. Needed unless `stream` is given.",
    )
    registry: Registry = Registry()
    retry: Retry = Retry()
    batch: Batch = Batch()
    limits: Limits = Limits()
    retention: Retention = Retention()
    verify: Verify = Verify()
    validation: Validation = Validation()
    quality: Quality = Quality()
    close: Close = Close()
    backfill: Backfill = Backfill()
    airflow: Airflow = Airflow()
    adapter: str = Field(DEFAULT_ADAPTER, pattern=r"^[\w.]+:\w+$", description="Adapter, as `module:Class`.")
    output: Output = Output()
    process: Process | None = Field(None, description="What is done with the output's events, key by key.")

    model_config = ConfigDict(json_schema_extra=one_stream.EITHER)
    _either = field_validator("primary", "foreign")(one_stream.either)

    @model_validator(mode="after")
    def _whole(self) -> Pipeline:
        if self.registry.retention < self.registry.bucket:
            raise ValueError("registry.retention is shorter than one registry.bucket; make it at least as long")
        window = min(self.verify.window, self.registry.retention)
        for item in self.inputs:
            if self.kept(item.name) < window:
                raise ValueError(f"retention.{item.name} is shorter than verify.window; make it at least as long")
        field, back = ("match.within" if self.match else "primary_time.lookback"), self.around and self.around.back
        if back and back > self.kept("primary") * MICROS:
            raise ValueError(
                f"foreign.{field} ({span_text(back / MICROS)}) is longer than retention.primary "
                f"({span_text(self.kept('primary'))}), so gc would take what clicks still look for; raise the latter "
                f"to {field.rpartition('.')[2]} plus the time that a click can come late by"
            )
        if self.adapter != DEFAULT_ADAPTER and not self.output.is_default:
            raise ValueError(f"adapter {self.adapter} and output both make the output; remove adapter, or else output")
        if self.process is None and PROCESSING in (self.airflow.dags or ()):
            raise ValueError("airflow.dags: process is for a pipeline with a section `process`; add it, or remove this")
        for clash in one_stream.clashes_of(self):
            raise ValueError(clash)
        return self

    @model_validator(mode="after")
    def _match_fits(self) -> Pipeline:
        if self.match and self.primary:
            self.match.require_flat(self.primary.source)
        if self.match and self.match.pick == "all":
            require_room(self.output.columns, "" if self.adapter == DEFAULT_ADAPTER else self.adapter)
        return self

    def kept(self, stream: str) -> float:
        """Seconds of event time that rows of `primary` or `foreign` are kept for."""
        given = self.retention.foreign if stream == "foreign" else self.retention.primary
        before = self.match.within if self.match and stream == "primary" else 0.0
        return self.registry.retention + before if given is None else given

    @property
    def zones(self) -> dict[str, str]:
        """The rules of the time zones that events' times are read by, by zone (model.zones)."""
        specs = (self.spec(item.name, 0) for item in self.inputs)
        forms = (form for spec in specs for form in (spec.event_form, spec.primary_form) if form and form.zone != "UTC")
        return {form.zone: form.rules for form in forms}

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The streams that it reads, those looked up first; the records of one alone lie where foreign ones do."""
        named: dict[Role, tuple[str, Primary | None]] = {
            "primary": ("primary", self.primary),
            "foreign": ("foreign", self.foreign) if self.stream is None else ("stream", self.stream),
        }
        return tuple(
            Input(role, role, stream, partial(self.spec, role), section)
            for role, (section, stream) in named.items()
            if stream is not None
        )

    @property
    def claimed(self) -> Primary:
        """The stream whose events are claimed: the foreign one, or the only one."""
        found = self.stream or self.foreign
        assert found  # see one_stream.either
        return found

    @property
    def file(self) -> str:
        """Path of the file that it was read from; empty where it was made otherwise."""
        return _FILES.get(self.root, "")

    @property
    def by_id(self) -> bool:
        """Whether an id alone names an event, whatever its time."""
        return self.registry.identity == "id"

    @property
    def repeats(self) -> float:
        """Seconds that two records of one id may lie apart and still be one event; 0 where the time is part of it."""
        given = self.registry.repeats
        return (self.registry.retention if given is None else given) if self.by_id else 0.0

    @property
    def says_time_passes(self) -> bool:
        """Whether a batch of no records says that time has passed, where nothing comes: something rests on that."""
        return self.process is not None or self.batch.heartbeats or self.by_watermark

    @property
    def by_watermark(self) -> bool:
        """Whether what becomes of foreign events rests on how far the primary stream has come."""
        return self.match is not None or self.retry.until == "watermark"

    @property
    def match(self) -> Match | None:
        """How foreign events are joined by a key and time; None where they name their primary event."""
        return self.foreign.match if self.foreign else None

    @property
    def first_delay(self) -> float:
        """Seconds to the first retry; what waits for the watermark is due once that has passed it, see retry.due."""
        return self.retry.max_delay if self.match else self.retry.first_delay

    @property
    def around(self) -> Around | None:
        """How far from its foreign event a primary event lies, where its time is not known."""
        rule = self.foreign and (self.foreign.match or self.foreign.primary_time)
        if isinstance(rule, Match):
            back, ahead = round(rule.within * MICROS), round(rule.skew * MICROS)
            return Around(back, ahead, rule.pick, bool(rule.prefer), rule.most if rule.pick == "all" else 0)
        return Around(round(rule.lookback * MICROS), round(rule.skew * MICROS)) if isinstance(rule, Lookback) else None

    @property
    def root(self) -> str:
        """Folder of this pipeline's tables."""
        return f"{self.lake.rstrip('/')}/{self.pipeline}"

    @property
    def needs_s3(self) -> bool:
        """Whether Spark has to commit to S3."""
        return is_on_s3(self.lake)

    def spec(self, stream: str, now_micros: int) -> RecordSpec:
        """How to read a record of `primary` or `foreign`, as of the time a batch was planned (microseconds)."""
        side = self.claimed if stream == "foreign" else self.primary
        assert side
        foreign = side if isinstance(side, Foreign) else None
        event_time, event_form = _time(side.event_time)
        primary_time, primary_form = _time(foreign.primary_time if foreign else None)
        key: Key | None = getattr(self.match.on, stream) if self.match else None
        assert event_time
        return RecordSpec(
            event_id=side.event_id,
            event_time=event_time,
            primary_id=key.columns if key else (foreign and foreign.primary_id) or (),
            primary_time=primary_time,
            earliest_micros=int(self.limits.earliest.timestamp() * MICROS),
            latest_micros=now_micros + int(self.limits.max_skew * MICROS),
            max_record=self.limits.max_record,
            event_form=event_form,
            primary_form=primary_form,
            typed=self.output.of(stream) if self.output.strict else (),
            records=side.source.keys_of_records if isinstance(side.source, Files) else (),
            texts=tuple(map(keys_of, side.source.json_texts)) if isinstance(side.source, Files | Kafka) else (),
            key="" if key is None else "first" if key.first else "all",
            where=self._where(stream, side),
            bare_times=isinstance(side.source, Files)
            and side.source.path.endswith(".parquet")
            and any(form.zone != "UTC" for form in (event_form, primary_form) if form),
        )

    @property
    def shares_log(self) -> bool:
        """Whether both streams read one log, of which each takes records."""
        return self.primary is not None and self.foreign is not None and self.primary.source == self.foreign.source

    def _where(self, stream: str, side: Primary) -> Where | None:
        other = self.primary if stream == "foreign" else self.foreign
        if self.shares_log and other:
            return Where(side.where, other.where, quiet=stream == "foreign")
        return Where(side.where) if side.where else None


def _time(rule: str | TimeColumn | Lookback | None) -> tuple[str | None, TimeForm | None]:
    """The rule or the column that a time is known by, if any, and the form of its text, if it has one of its own."""
    if isinstance(rule, TimeColumn):
        return rule.column[0], rule.form
    return (rule if isinstance(rule, str) else None), None


def _gist(error: yaml.YAMLError) -> str:
    """What is wrong, and where, in a line."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return " ".join(str(error).split())
    about = f"{error.context}: " if error.context else ""
    return f"{about}{error.problem} at line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}"


def load(file: str | Path) -> Pipeline:
    """Read and validate a pipeline's file; relative paths in it become absolute.

    Errors: ConfigError, which names the file, every wrong field and what to write instead.
    """
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})", remedy="Give the pipeline's YAML file") from error
    try:
        raw = parse(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: is not YAML: {_gist(error)}", remedy="Fix it there") from error
    if not isinstance(raw, dict):
        raise ConfigError(
            f"{path}: holds no fields", remedy="Remove it, and `clickjoin init` with this name writes one to start from"
        )
    try:
        pipeline = anchored(Pipeline.model_validate(raw), path.resolve().parent)
    except ValidationError as error:
        raise ConfigError(f"{path}:\n{explain(error)}", remedy="See `clickjoin schema --config-file`") from error
    if found := clashes(pipeline):
        raise ConfigError(f"{path}:\n" + "\n".join(f"  {line}" for line in found), remedy="Keep the folders apart")
    declare_places(pipeline)
    _FILES[pipeline.root] = str(path.resolve())
    return pipeline


def json_schema() -> str:
    """JSON Schema of a pipeline's file, for editors."""
    return json.dumps(Pipeline.model_json_schema(mode="validation"), indent=2)


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


def anchored(pipeline: Pipeline, base: Path) -> Pipeline:
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
            "output": one_stream.output_with_record(pipeline),
            "stream": side(pipeline.stream),
            "primary": side(pipeline.primary),
            "foreign": side(pipeline.foreign),
        }
    )


@dataclass(frozen=True)
class Several:
    """Pipelines by their files. `broken`: why files cannot be read, by path."""

    good: tuple[Pipeline, ...]
    broken: Mapping[str, str]

    @property
    def pipeline(self) -> str:
        """What they are called together."""
        return f"of {len(self.good)} pipelines"

    @property
    def needs_s3(self) -> bool:
        """Whether Spark has to commit to S3."""
        return any(pipeline.needs_s3 for pipeline in self.good)


def load_several(files: str) -> Several:
    """Read and validate pipelines' files, with `:` between them as in PATH. Errors: ConfigError where none is named."""
    paths = [path for path in files.split(os.pathsep) if path]
    if not paths:
        raise ConfigError("no pipeline's file is named", remedy="Give their paths, with `:` between them")
    good, broken = list[Pipeline](), dict[str, str]()
    for path in paths:
        try:
            good.append(load(path))
        except ConfigError as error:
            broken[path] = str(error)
    return Several(tuple(good), broken)
