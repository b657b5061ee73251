"""The sections of a pipeline's file besides its streams, its output and the quality of its data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, field_validator, model_validator

from clickjoin.config.types import Duration, Place, Size, SizeOrZero, Strict, listed, sound_path
from clickjoin.model.dags import Dag
from clickjoin.model.field_path import FieldPath, parse_path
from clickjoin.model.places import Store


class Registry(Strict):
    """How long ids are remembered, and how they are laid out."""

    identity: Literal["id", "id_and_time"] = Field(
        "id_and_time", description="what an event is known by; id: whatever its time"
    )
    retention: Duration = 3 * 86400.0
    repeats: Duration | None = Field(
        None,
        description="of identity id: so far apart, by their own times, two records of one id are still one event; "
        "default: retention",
    )
    bucket: Duration = 3600.0
    shards: int = Field(4, ge=1, le=10_000)
    max_rows: int | None = Field(None, ge=1, description="oldest buckets go first where there are more claims")
    max_bytes: Size | None = Field(None, description="oldest buckets go first where claims take more on disk")

    @model_validator(mode="after")
    def _repeats_by_id(self) -> Registry:
        if self.repeats is not None and self.identity != "id":
            raise ValueError("repeats is for identity: id; where the time is part of the identity, remove it")
        if self.repeats is not None and self.repeats < self.bucket:
            raise ValueError("repeats is shorter than one bucket; make it at least as long")
        return self

    @field_validator("bucket")
    @classmethod
    def _whole_minutes(cls, value: float) -> float:
        if value < 60 or value % 60 or 86400 % value:
            raise ValueError("bucket must be whole minutes that divide a day, such as 15m, 1h or 1d")
        return value


class Retry(Strict):
    """When a foreign event without its primary is tried again, and when it is given up: tried often AND for long."""

    first_delay: Duration = 10.0
    backoff: float = Field(2.0, ge=1)
    max_delay: Duration = 3600.0
    max_age: Duration = 86400.0
    max_attempts: int = Field(10, ge=1)
    until: Literal["attempts", "watermark"] = Field(
        "attempts", description="watermark: given up at once when the primary stream has passed its event's time too"
    )


class Batch(Strict):
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


class Retention(Strict):
    """How long what is no longer needed for joining is kept. `primary`, `foreign`: of event time."""

    primary: Duration | None = Field(None, description="default: registry.retention")
    foreign: Duration | None = Field(None, description="default: registry.retention")
    pending: Duration = Field(7 * 86400.0, description="history of events that wait no longer")
    journal: Duration = 7 * 86400.0
    metrics: Duration = Field(90 * 86400.0, description="rows of metrics and of verifications")
    files: Duration = Field(86400.0, ge=3600, description="files that no table version needs: for readers and replays")


class Verify(Strict):
    """What a verification without a range covers: events from so long ago until now; GC leaves these alone."""

    window: Duration = 2 * 86400.0
    full_every: Duration = Field(86400.0, description="how often it covers all that the lake keeps instead")
    repair: bool = Field(False, description="fix what can be fixed, at once")


class Limits(Strict):
    """What is too old, too new or too long to be true, and so goes to quarantine."""

    earliest: datetime = datetime(2000, 1, 1, tzinfo=UTC)
    max_skew: Duration = 300.0
    max_record: Size = 16_000_000

    @field_validator("earliest")
    @classmethod
    def _aware(cls, value: datetime) -> datetime:
        return value if value.tzinfo else value.replace(tzinfo=UTC)


class Validation(Strict):
    """Shares of the sampled records from which on `validate` ends with 1."""

    quarantine: float = Field(0.01, ge=0, le=1, description="of a stream's records that would go to quarantine")
    unmatched: float = Field(0.2, ge=0, le=1, description="of foreign events that find no primary event")
    misfits: float = Field(0.01, ge=0, le=1, description="of a column's values that do not fit its type")
    doubled: float = Field(0.0, ge=0, le=1, description="of foreign ids that come with several times")


class Airflow(Strict):
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


class Close(Strict):
    """When a date of event time is complete, how long that is waited for, and what happens then."""

    max_out_of_orderness: Duration = Field(
        600.0, description="how much older than those before it a record of a log may be"
    )
    idle_timeout: Duration = Field(
        900.0, description="a stream that gave nothing for so long, and is all read, is at rest"
    )
    pending: Literal["wait", "allow"] | Annotated[float, Field(ge=0, le=1)] = Field(
        "wait",
        description="with events that wait a date may close: not, with any, or while those without a primary event "
        "(waiting, or given up) are no more than this share of its accepted ones",
    )
    wait: Duration = Field(36 * 3600.0, description="after the date's end, at most")
    at_limit: Literal["fail", "close"] = Field("fail", description="close: with what is there by then, and say so")
    late_window: Duration = Field(7 * 86400.0, description="how far back closed dates are checked for late changes")
    lease: Duration = Field(120.0, ge=5, description="how long a date stays taken after a run that was killed")


class Backfill(Strict):
    """What a backfill may ask for."""

    roots: tuple[Place, ...] | None = Field(
        None, description="folders that raw logs are taken below; default: those that the sources' globs start from"
    )


_SECRET = re.compile(r"secret|passw|token|credential|access[_.-]?key|api[_.-]?key|^(key|user|username)$", re.IGNORECASE)
_ELSEWHERE = (
    "credentials are no part of a pipeline's file; remove it, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a "
    "profile (AWS_PROFILE) or a role where clickjoin, Airflow and Spark run"
)


class S3(Strict):
    """The store that the lake lies in; what is left out is as the environment has it (`AWS_*`)."""

    endpoint: str | None = Field(None, description="URL of a server that is not Amazon's, such as https://s3.example")
    region: str | None = Field(None, pattern=r"^[a-z0-9-]+$", description="such as eu-west-1")
    path_style: bool | None = Field(
        None, description="whether a bucket is part of the path, and not of the host's name; default: with an endpoint"
    )

    @model_validator(mode="before")
    @classmethod
    def _without_secrets(cls, value: Any) -> Any:
        found = [str(name) for name in value if _SECRET.search(str(name))] if isinstance(value, dict) else []
        if found:
            raise ValueError(f"{', '.join(found)}: {_ELSEWHERE}")
        return value

    @field_validator("endpoint")
    @classmethod
    def _plain(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.username or parts.password:
            raise ValueError(f"holds a user or a password: {_ELSEWHERE}")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
            raise ValueError("is no server's address; write http://HOST:PORT or https://HOST:PORT")
        return value.rstrip("/")

    @property
    def store(self) -> Store:
        """As plain data."""
        return Store(self.endpoint, self.region, self.path_style)


_CLASS = r"[\w.]+:\w+"
_SHIPPED = ("TumblingCounts", "SessionWindows", "SpikesAndDips")


class Process(Strict):
    """What is done with the events of each key, exactly once, as the output grows."""

    key: Annotated[tuple[str, ...], BeforeValidator(listed)] = Field(
        min_length=1, description="columns of the output, or paths in one that holds records: primary_record.item_id"
    )
    processor: str = Field(
        "clickjoin.processors:SpikesAndDips", pattern=f"^{_CLASS}$", description="module:Class of a Processor"
    )
    args: Mapping[str, Any] = Field({}, description="arguments of the processor")
    late: Literal["keep", "correct"] = Field(
        "keep",
        description="what comes behind the watermark is kept in table `late`, and changes nothing (keep), or corrects "
        "what was reported by a retraction and a new row (correct)",
    )
    lateness: Duration = Field(
        3600.0, description="of late: correct: how far behind the watermark an event still corrects"
    )
    catch_up: Duration = Field(
        86400.0, description="while unread rows are left, the watermark is so far behind the newest event that was read"
    )

    @field_validator("key")
    @classmethod
    def _sound(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(sound_path, value))

    @field_validator("processor", mode="before")
    @classmethod
    def _with_module(cls, value: Any) -> Any:
        if isinstance(value, str) and not re.fullmatch(_CLASS, value):
            shipped = f", such as clickjoin.processors:{value}" if value in _SHIPPED else ""
            raise ValueError(f"{value!r} is no class of a module: write module:Class{shipped}")
        return value

    @property
    def corrects(self) -> float:
        """How many seconds behind the watermark an event still corrects what was reported; 0: none does."""
        return self.lateness if self.late == "correct" else 0.0

    @property
    def paths(self) -> tuple[FieldPath, ...]:
        """Column of the output, and the path inside it, of each part of the key."""
        return tuple(parse_path(text) for text in self.key)
