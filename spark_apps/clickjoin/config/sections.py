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
        "id_and_time",
        description="What names an event: its id and time, or (`id`) its id alone; its time still says its date.",
    )
    retention: Duration = Field(
        3 * 86400.0,
        description="How long ids are remembered, back from the newest claimed event. `gc` drops older claims, and "
        "events older than that are `expired`.",
    )
    repeats: Duration | None = Field(
        None,
        description="With `identity: id`: two records of one id at most so far apart are one event. Claims are "
        "kept for `retention` and `repeats`. Fixed once the tables exist. Default: `registry.retention`.",
    )
    bucket: Duration = Field(
        3600.0,
        description="Width of a partition of event time: whole minutes that divide a day. Fixed once the tables exist.",
    )
    shards: int = Field(
        4, ge=1, le=10_000, description="Shards of a new lake; later the table `timeline` says how many there are."
    )
    max_rows: int | None = Field(
        None, ge=1, description="Most claims that are kept: beyond it the oldest buckets are dropped first."
    )
    max_bytes: Size | None = Field(
        None, description="Most bytes that claims take on disk: beyond it the oldest buckets are dropped first."
    )

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
    """When a foreign event without its primary is tried again. It is given up after `max_attempts` AND `max_age`."""

    first_delay: Duration = Field(10.0, description="Time from the first try of an event to the second.")
    backoff: float = Field(2.0, ge=1, description="Factor by which each delay is longer than the one before.")
    max_delay: Duration = Field(3600.0, description="Longest delay between two tries.")
    max_age: Duration = Field(
        86400.0,
        description="Least time since the first try after which an event is given up; downtime, and lag of the primary "
        "stream, do not count.",
    )
    max_attempts: int = Field(10, ge=1, description="Least number of tries after which an event is given up.")
    until: Literal["attempts", "watermark"] = Field(
        "attempts",
        description="`watermark`: an event is also given up, as absent (`metrics.absent`), once the primary stream has "
        "been read past its primary event's time by `close.max_out_of_orderness`. If that time is not known, its own "
        "counts. `redrive` joins it if its primary event comes after all.",
    )


class Batch(Strict):
    """How much one micro-batch may take, and how long a task goes on before it returns to its scheduler."""

    max_events: int = Field(
        1_000_000, ge=1, description="Most events that a batch takes of each stream, also while it catches up."
    )
    max_bytes: Size = Field(
        512_000_000, description="Most bytes that a batch takes of each stream, also while it catches up."
    )
    lease: Duration = Field(
        60.0, description="How long an Airflow task works before it hands over to the next, which is started then."
    )
    hand_over: Duration = Field(
        30.0, description="How long after its lease a task works on until the next one takes over."
    )
    trigger_interval: Duration = Field(
        1.0,
        description="Average time between batches, while none is behind. After a quiet time batches begin at once, up "
        "to ten intervals' worth. Each adds a file to every bucket and shard that it touches.",
    )
    heartbeats: bool = Field(
        False,
        description="Write empty batches when a stream is idle, so that the watermark advances. Always on with "
        "`process`, `foreign.match` and `retry.until: watermark`; logs that are loaded once need it.",
    )
    driver_bytes: SizeOrZero = Field(
        16_000_000,
        description="Batches smaller than this run in the driver; larger ones, and those of more than 20,000 events, "
        "on Spark's executors. `0B`: always executors.",
    )
    parallelism: int = Field(
        8,
        ge=1,
        description="Tasks that a large batch is cut into, to be read and joined; no fewer than Spark has cores.",
    )
    catch_up_share: float = Field(
        0.5, gt=0, le=1, description="Share of its time that a replica works while it is behind and another is not."
    )


class Retention(Strict):
    """How long what is no longer needed for joining is kept."""

    primary: Duration | None = Field(
        None,
        description="How long rows of the primary stream's table are kept, by event time; at least `lookback` or "
        "`within`. Default: `registry.retention`, with `match` plus `within`.",
    )
    foreign: Duration | None = Field(
        None,
        description="How long rows of the foreign stream's table are kept, by event time. Default: "
        "`registry.retention`.",
    )
    pending: Duration = Field(7 * 86400.0, description="How long rows of `pending` are kept once they are resolved.")
    journal: Duration = Field(7 * 86400.0, description="How long settled batches are kept in the journal.")
    metrics: Duration = Field(90 * 86400.0, description="How long rows of metrics and of verifications are kept.")
    files: Duration = Field(
        86400.0,
        ge=3600,
        description="How long files that the newest table version no longer has are kept, for readers and replays.",
    )


class Verify(Strict):
    """What a verification without a range covers."""

    window: Duration = Field(
        2 * 86400.0,
        description="How far back from now it looks; `registry.max_rows` and `max_bytes` drop no claim of that time.",
    )
    full_every: Duration = Field(86400.0, description="How often it covers all that the lake keeps instead.")
    repair: bool = Field(False, description="Whether a scheduled verification fixes what it can.")


class Limits(Strict):
    """What is too old, too new or too long to be true, and so goes to quarantine."""

    earliest: datetime = Field(
        datetime(2000, 1, 1, tzinfo=UTC), description="Earliest event time; earlier ones go to quarantine."
    )
    max_skew: Duration = Field(
        300.0,
        description="How far an event time may lie in the future, by the clock that reads it. Fixed once the tables "
        "exist.",
    )
    max_record: Size = Field(16_000_000, description="Longest record, in bytes; longer ones go to quarantine.")

    @field_validator("earliest")
    @classmethod
    def _aware(cls, value: datetime) -> datetime:
        return value if value.tzinfo else value.replace(tzinfo=UTC)


class Validation(Strict):
    """Shares of the sampled records beyond which `validate` ends with 1."""

    quarantine: float = Field(0.01, ge=0, le=1, description="Share of a stream's records that would go to quarantine.")
    unmatched: float = Field(0.2, ge=0, le=1, description="Share of foreign events that find no primary event.")
    misfits: float = Field(0.01, ge=0, le=1, description="Share of a column's values that do not fit its type.")
    doubled: float = Field(0.0, ge=0, le=1, description="Share of foreign ids that come with several times.")


class Airflow(Strict):
    """What Airflow makes of the file."""

    dags: tuple[Dag, ...] | None = Field(
        None,
        description="DAGs that Airflow makes of the file, such as `[join, retry, gc]`; without `retry` the join tries "
        "again what waits. Default: all.",
    )
    group: str | None = Field(
        None,
        pattern=r"^[a-z][a-z0-9_-]{0,62}$",
        description="Name of a group: one task joins all pipelines that have the same one, and tries again what waits.",
    )

    @model_validator(mode="after")
    def _joins(self) -> Airflow:
        if self.group and self.dags is not None and "join" not in self.dags:
            raise ValueError("group: is for a pipeline that Airflow joins; add join to airflow.dags, or remove group")
        return self


class Close(Strict):
    """When a date of event time is complete, how long that is waited for, and what happens then."""

    max_out_of_orderness: Duration = Field(
        600.0, description="How much older than those before it in its log file a record may be."
    )
    idle_timeout: Duration = Field(
        900.0, description="A stream that is read to its end and has no new records for so long is idle."
    )
    pending: Literal["wait", "allow"] | Annotated[float, Field(ge=0, le=1)] = Field(
        "wait",
        description="Whether a date may close with events that wait: no (`wait`), yes (`allow`), or up to a share such "
        "as `0.01`. The share is of accepted events that wait or were given up.",
    )
    wait: Duration = Field(36 * 3600.0, description="How long after its end a date is waited for.")
    at_limit: Literal["fail", "close"] = Field(
        "fail", description="What happens after `wait`: `close` closes the date as it is, and says so."
    )
    late_window: Duration = Field(7 * 86400.0, description="How far back closed dates are checked for late changes.")
    lease: Duration = Field(120.0, ge=5, description="How long a date stays locked after a run of it was killed.")


class Backfill(Strict):
    """What a backfill may ask for."""

    roots: tuple[Place, ...] | None = Field(
        None,
        description="Folders, or `s3://BUCKET/FOLDER`, that raw logs may be read from; `[]`: none. Default: the "
        "folders that the sources' globs start from.",
    )


_SECRET = re.compile(r"secret|passw|token|credential|access[_.-]?key|api[_.-]?key|^(key|user|username)$", re.IGNORECASE)
_ELSEWHERE = (
    "credentials are no part of a pipeline's file; remove it, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a "
    "profile (AWS_PROFILE) or a role where clickjoin, Airflow and Spark run"
)


class S3(Strict):
    """The store that the lake, and logs on S3, lie in. Credentials are refused here."""

    endpoint: str | None = Field(
        None,
        description="Server that a lake and logs on S3 lie on, such as `https://s3.example`. Default: "
        "`AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, else Amazon's.",
    )
    region: str | None = Field(
        None,
        pattern=r"^[a-z0-9-]+$",
        description="Region that requests are signed for, such as `eu-west-1`; most servers of one's own take any. "
        "Default: `AWS_REGION`, `AWS_DEFAULT_REGION`.",
    )
    path_style: bool | None = Field(
        None,
        description="Whether a bucket is part of the path (`http://HOST/BUCKET`), and not of the host's name. Default: "
        "`true` with an endpoint.",
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
        min_length=1,
        description="Columns of the output that the key is made of, or paths in one that holds records, such as "
        "`primary_record.item_id`.",
    )
    processor: str = Field(
        "clickjoin.processors:SpikesAndDips", pattern=f"^{_CLASS}$", description="Processor, as `module:Class`."
    )
    args: Mapping[str, Any] = Field({}, description="Arguments of the processor.")
    late: Literal["keep", "correct"] = Field(
        "keep",
        description="Events behind the watermark are kept in table `process/late` (`keep`), or correct what was "
        "reported by a retraction and a new row (`correct`).",
    )
    lateness: Duration = Field(
        3600.0, description="With `late: correct`: how far behind the watermark an event still corrects."
    )
    catch_up: Duration = Field(
        86400.0, description="How far the watermark is behind the newest event that was read, while rows are left."
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
