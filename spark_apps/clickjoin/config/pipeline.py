"""A pipeline's configuration: one YAML file, validated, with errors that name file, field and remedy."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import yaml
from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from clickjoin.config import one_stream
from clickjoin.config.anchored import anchored, declare_places
from clickjoin.config.dates import Backfill, Close
from clickjoin.config.file import clashes, explain, parse
from clickjoin.config.inputs import Input, inputs_of
from clickjoin.config.output import Output
from clickjoin.config.process import Process
from clickjoin.config.quality import Quality
from clickjoin.config.store import S3
from clickjoin.config.streams import Foreign, Lookback, Primary, TimeColumn
from clickjoin.config.types import Duration, Place, Size, SizeOrZero
from clickjoin.config.types import Strict as _Strict
from clickjoin.model.dags import PROCESSING, Dag
from clickjoin.model.errors import ConfigError
from clickjoin.model.ids import MICROS, RecordSpec, TimeForm
from clickjoin.model.places import is_on_s3

DEFAULT_ADAPTER = "clickjoin.joiner.adapter:BothRecords"


class Registry(_Strict):
    """How long ids are remembered, and how they are laid out."""

    identity: Literal["id", "id_and_time"] = Field(
        "id_and_time", description="what an event is known by; id: whatever its time, of one stream alone"
    )
    retention: Duration = 3 * 86400.0
    bucket: Duration = 3600.0
    shards: int = Field(4, ge=1, le=10_000)
    max_rows: int | None = Field(None, ge=1, description="oldest buckets go first where there are more claims")
    max_bytes: Size | None = Field(None, description="oldest buckets go first where claims take more on disk")

    @field_validator("bucket")
    @classmethod
    def _whole_minutes(cls, value: float) -> float:
        if value < 60 or value % 60 or 86400 % value:
            raise ValueError("bucket must be whole minutes that divide a day, such as 15m, 1h or 1d")
        return value


class Retry(_Strict):
    """When a foreign event without its primary is tried again, and when it is given up: tried often AND for long."""

    first_delay: Duration = 10.0
    backoff: float = Field(2.0, ge=1)
    max_delay: Duration = 3600.0
    max_age: Duration = 86400.0
    max_attempts: int = Field(10, ge=1)
    until: Literal["attempts", "watermark"] = Field(
        "attempts", description="watermark: given up at once when the primary stream has passed its event's time too"
    )


class Batch(_Strict):
    """How much one micro-batch may take, and how long a task goes on before it returns to its scheduler."""

    max_events: int = Field(1_000_000, ge=1)
    max_bytes: Size = 512_000_000
    lease: Duration = 60.0
    hand_over: Duration = Field(30.0, description="so long after its lease a task waits for the next one")
    trigger_interval: Duration = Field(
        1.0, description="from one batch of new records to the next, while none is behind"
    )
    heartbeats: bool = Field(
        False, description="where nothing comes, batches of no records say that time passes; always with `process`"
    )
    driver_bytes: SizeOrZero = Field(
        16_000_000, description="so much of a stream is parsed, and so much is written, without Spark"
    )
    parallelism: int = Field(8, ge=1, description="tasks that a large batch is cut into; no fewer than Spark has cores")
    catch_up_share: float = Field(
        0.5, gt=0, le=1, description="share of its time that a replica works while it is behind and another is not"
    )


class Retention(_Strict):
    """How long what is no longer needed for joining is kept. `primary`, `foreign`: of event time."""

    primary: Duration | None = Field(None, description="default: registry.retention")
    foreign: Duration | None = Field(None, description="default: registry.retention")
    pending: Duration = Field(7 * 86400.0, description="history of events that wait no longer")
    journal: Duration = 7 * 86400.0
    metrics: Duration = Field(90 * 86400.0, description="rows of metrics and of verifications")
    files: Duration = Field(86400.0, ge=3600, description="files that no table version needs: for readers and replays")


class Verify(_Strict):
    """What a scheduled verification covers: events from so long ago until now; GC leaves these alone."""

    window: Duration = 2 * 86400.0
    repair: bool = Field(False, description="fix what can be fixed, at once")


class Limits(_Strict):
    """What is too old, too new or too long to be true, and so goes to quarantine."""

    earliest: datetime = datetime(2000, 1, 1, tzinfo=UTC)
    max_skew: Duration = 300.0
    max_record: Size = 16_000_000

    @field_validator("earliest")
    @classmethod
    def _aware(cls, value: datetime) -> datetime:
        return value if value.tzinfo else value.replace(tzinfo=UTC)


class Airflow(_Strict):
    """What Airflow makes of the file."""

    dags: tuple[Dag, ...] | None = Field(None, description="DAGs that it makes; default: all")
    group: str | None = Field(
        None,
        pattern=r"^[a-z][a-z0-9_-]{0,62}$",
        description="joined, and tried again, by one task with all other pipelines of this group",
    )

    @model_validator(mode="after")
    def _joins(self) -> Airflow:
        if self.group and self.dags is not None and "join" not in self.dags:
            raise ValueError("group: is for a pipeline that Airflow joins; add join to airflow.dags, or remove group")
        return self


class Pipeline(_Strict):
    """One pipeline: what to join, how, and where to."""

    pipeline: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,62}$", description="name; the tables' folder in the lake")
    lake: Place = Field(
        description="folder that holds the tables, relative to the pipeline's file, or s3://BUCKET/PREFIX"
    )
    engine: Literal["arrow", "spark"] = Field(
        "arrow",
        description="what a batch's steps run on: arrow, in this process or on executors",
    )
    s3: S3 = S3()
    stream: Primary | None = Field(None, description="one stream to deduplicate, in place of primary and foreign")
    primary: Primary | None = Field(None, validate_default=True)
    foreign: Foreign | None = Field(None, validate_default=True)
    registry: Registry = Registry()
    retry: Retry = Retry()
    batch: Batch = Batch()
    limits: Limits = Limits()
    retention: Retention = Retention()
    verify: Verify = Verify()
    quality: Quality = Quality()
    close: Close = Close()
    backfill: Backfill = Backfill()
    airflow: Airflow = Airflow()
    adapter: str = Field(DEFAULT_ADAPTER, pattern=r"^[\w.]+:\w+$", description="module:Class")
    output: Output = Output()
    process: Process | None = Field(None, description="what is done with the output's events, key by key")

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
        if self.adapter != DEFAULT_ADAPTER and not self.output.is_default:
            raise ValueError(f"adapter {self.adapter} and output both make the output; remove adapter, or else output")
        if self.process is None and PROCESSING in (self.airflow.dags or ()):
            raise ValueError("airflow.dags: process is for a pipeline with a section `process`; add it, or remove this")
        for clash in one_stream.clashes_of(self, DEFAULT_ADAPTER):
            raise ValueError(clash)
        return self

    def kept(self, stream: str) -> float:
        """Seconds of event time that rows of `primary` or `foreign` are kept for."""
        given = self.retention.foreign if stream == "foreign" else self.retention.primary
        return self.registry.retention if given is None else given

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The streams that it reads: those that are looked up first."""
        return inputs_of(self)

    @property
    def claimed(self) -> Primary:
        """The stream whose events are claimed: the foreign one, or the only one."""
        found = self.stream or self.foreign
        assert found  # see one_stream.either
        return found

    @property
    def by_id(self) -> bool:
        """Whether an id alone names an event, whatever its time."""
        return self.registry.identity == "id"

    @property
    def lookback(self) -> float | None:
        """How many seconds a primary event lies before its foreign one at most, where its time is not known."""
        rule = self.foreign.primary_time if self.foreign else None
        return rule.lookback if isinstance(rule, Lookback) else None

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
        primary_time, primary_form = _time(foreign.primary_time) if foreign else (None, None)
        assert event_time
        return RecordSpec(
            event_id=side.event_id,
            event_time=event_time,
            primary_id=foreign.primary_id if foreign else (),
            primary_time=primary_time,
            earliest_micros=int(self.limits.earliest.timestamp() * MICROS),
            latest_micros=now_micros + int(self.limits.max_skew * MICROS),
            max_record=self.limits.max_record,
            event_form=event_form,
            primary_form=primary_form,
            typed=self.output.of(stream) if self.output.strict else (),
            landed_micros=now_micros,
        )


def _time(rule: str | TimeColumn | Lookback) -> tuple[str | None, TimeForm | None]:
    """The rule or the column that a time is known by, if any, and the form of its text, if it has one of its own."""
    if isinstance(rule, TimeColumn):
        return rule.column, rule.form
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
        pipeline = anchored(Pipeline.model_validate(raw), path.resolve().parent, DEFAULT_ADAPTER)
    except ValidationError as error:
        raise ConfigError(f"{path}:\n{explain(error)}", remedy="See `clickjoin schema --config-file`") from error
    if found := clashes(pipeline):
        raise ConfigError(f"{path}:\n" + "\n".join(f"  {line}" for line in found), remedy="Keep the folders apart")
    declare_places(pipeline)
    return pipeline


def json_schema() -> str:
    """JSON Schema of a pipeline's file, for editors."""
    return json.dumps(Pipeline.model_json_schema(mode="validation"), indent=2)
