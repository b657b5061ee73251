"""The two streams of a pipeline: where their records lie, and which of their columns are ids and times."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticKnownError

from clickjoin.config.kafka import Kafka
from clickjoin.config.match import Match
from clickjoin.config.types import (
    Duration,
    Ids,
    JsonTexts,
    Logs,
    Path,
    Place,
    Strict,
    distinct,
    keys_of,
    listed,
    separates,
)
from clickjoin.config.where import Conditions
from clickjoin.model.field_path import parse_path, path_text
from clickjoin.model.ids import ISO, TimeForm
from clickjoin.model.places import DEDUPLICATED, RECORD, RECORDS, is_on_s3
from clickjoin.model.zones import rules_of

Start = Annotated[
    Literal["earliest", "latest"] | Annotated[int, Field(ge=0)],
    Field(
        description="What is read first: all rows of the table, only what is added from now on, or what is added from "
        "a version on."
    ),
]


class _Table(Strict):
    """What both kinds have."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    start: Start = Field("earliest", alias="from")


class Delta(_Table):
    """A Delta table: what each of its versions adds."""

    kind: Literal["delta"] = Field(description="A Delta table, whatever writes it.")
    path: Place = Field(description="Folder of the table, relative to the pipeline's file, or `s3://BUCKET/PREFIX`.")
    json_columns: tuple[str, ...] = Field(
        (), description="Columns of JSON text, whose objects become part of the record."
    )


PIPELINE = r"^[a-z][a-z0-9_-]{0,62}$"


class OfPipeline(_Table):
    """The output of another pipeline."""

    kind: Literal["pipeline"] = Field(description="The output of another pipeline.")
    name: str = Field(pattern=PIPELINE, description="Name of the other pipeline.")
    lake: Place | None = Field(None, description="Its lake. Default: the one of this pipeline.")
    output: Literal["joined", "deduplicated"] = Field(
        "joined", description="Its output's table: `deduplicated` where it is of one stream."
    )
    json_columns: tuple[str, ...] = Field(
        default_factory=lambda said: (RECORD,) if said.get("output") == DEDUPLICATED else tuple(RECORDS.values()),
        description="Columns of JSON text, whose objects become part of the record. Default: its whole records, "
        "`[foreign_record, primary_record]` or `[record]`.",
    )

    @property
    def root(self) -> str:
        """Folder of the other pipeline's tables."""
        return f"{(self.lake or '').rstrip('/')}/{self.name}"

    @property
    def path(self) -> str:
        """Folder of its output."""
        return f"{self.root}/{self.output}"


IN_ID = ("embedded", "uuid7")


class Files(Strict):
    """Log files that grow, or objects on S3: JSON lines, CSV, or whole Parquet files."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kind: Literal["files"] = Field(description="Growing files in folders, or objects on S3.")
    path: Logs = Field(description="Glob of files, relative to the pipeline's file, or `s3://BUCKET/KEYS`.")
    format: Literal["jsonl", "csv", "parquet"] | None = Field(
        None,
        description="Format of the files. Default: by the name (`.csv`, `.parquet`, else `jsonl`; before `.gz`, "
        "`.zst`, `.bz2`).",
    )
    separator: str = Field(",", min_length=1, max_length=1, description="Of CSV: one character between fields.")
    columns: tuple[str, ...] | None = Field(
        None, description="Of CSV: names of the columns, where no header names them. Default: the header."
    )
    multiline: bool = Field(False, description="Of CSV: whether quoted fields may hold line ends.")
    records: Path | None = Field(
        None, description="Of JSON: the array in each line whose elements are the records, such as `Records`."
    )
    json_texts: JsonTexts = Field(
        (),
        alias="json",
        description="Of JSON: fields whose text is JSON, such as `Message`: what they hold becomes part of the record.",
    )

    ordered: bool = Field(
        False, description="Of S3: whether in each folder a new object's key always comes after all others."
    )
    lookback: Duration | None = Field(
        None, description="Of S3: how late an object may show up, by its own time. Default: `2d`."
    )
    relist: Duration | None = Field(
        None, description="Of S3: how often folders of older dates are listed too. Default: `10m`."
    )

    _separates = field_validator("separator")(separates)
    _distinct = field_validator("columns")(distinct)

    @model_validator(mode="after")
    def _fits(self) -> Files:
        if not is_on_s3(self.path) and (self.ordered or self.lookback is not None or self.relist is not None):
            raise ValueError("ordered, lookback and relist are for logs on S3; remove them")
        if self.format == "parquet" and not self.path.endswith(".parquet"):
            raise ValueError(
                "format parquet is for files named .parquet; let the path end so, such as clicks/*.parquet"
            )
        if self.format in ("jsonl", "parquet") and (
            self.columns is not None or self.separator != "," or self.multiline
        ):
            raise ValueError(f"separator, columns and multiline are for CSV; remove them, or format: {self.format}")
        is_csv = self.format == "csv" or self.columns is not None
        if self.records and (is_csv or not all(isinstance(step, str) for step in parse_path(self.records))):
            raise ValueError("records is for JSON, and names an array by its keys, such as Records or detail.events")
        if self.json_texts and is_csv:
            raise ValueError("json is for records of JSON; remove it, for all fields of CSV are text")
        return self

    @property
    def keys_of_records(self) -> tuple[str, ...]:
        """The keys that lead to the array of records; none where each line is one."""
        return keys_of(self.records) if self.records else ()


class TimeColumn(Strict):
    """A time's column whose text is not ISO 8601 in UTC: its forms, in strptime's directives, and its time zone."""

    column: Annotated[tuple[Path, ...], BeforeValidator(listed, json_schema_input_type=str | list[str])] = Field(
        min_length=1,
        description="Column of the time, or several, such as `[date, time]`: their texts with a blank between them.",
    )
    format: Annotated[tuple[str, ...], BeforeValidator(listed, json_schema_input_type=str | list[str])] = Field(
        (ISO,),
        min_length=1,
        description="Form of the text in strptime's directives, such as `%d/%m/%Y %H:%M:%S`, or a list of forms; `iso` "
        "is ISO 8601.",
    )
    zone: str = Field("UTC", description="Time zone, such as `Europe/Berlin`; not beside `%z`.")

    @model_validator(mode="after")
    def _readable(self) -> TimeColumn:
        if self.column[0] in IN_ID:
            raise ValueError(
                f"column {self.column[0]!r} is called like the rule {self.column[0]}, and would be taken for it; write "
                f"{self.column[0]} alone if the rule is meant, else give the column another name in the log"
            )
        for form in self.format:
            _require_readable(form)
        try:
            ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError):
            raise ValueError(f"zone {self.zone!r} is no time zone; write a name such as Europe/Berlin") from None
        if all("%z" in form for form in self.format) and "zone" in self.model_fields_set:
            raise ValueError("the format's %z names the zone already; remove zone")
        return self

    def __str__(self) -> str:
        return f"{', '.join(self.column)} as {' or '.join(self.format)} in {self.zone}"  # a lake keeps it

    @property
    def form(self) -> TimeForm:
        """How a text of it is read."""
        forms = dict.fromkeys(form for given in self.format for form in _with_parts_left_out(given))
        return TimeForm(tuple(forms), self.zone, rules_of(self.zone), self.column[1:])


def _require_readable(form: str) -> None:
    if form == ISO:
        return
    if "%" not in form:
        raise ValueError(f"format {form!r} has none of strptime's directives, such as %Y; `iso` is ISO 8601")
    if "%Z" in form.removesuffix("%Z"):
        raise ValueError(f"format {form!r}: %Z, a name such as CEST, is read at the end alone; write %z for an offset")
    sample = datetime(2026, 11, 22, 13, 14, 15, 160000, UTC)
    try:
        datetime.strptime(sample.strftime(form), form)
    except (ValueError, re.error) as error:
        raise ValueError(f"format {form!r} cannot be read by strptime ({error}); see its directives") from None


def _with_parts_left_out(form: str) -> tuple[str, str, str]:
    """A form, the same without a fraction, and without seconds: many writers leave out what is zero."""
    whole = form.replace(".%f", "").replace(",%f", "")
    return form, whole, whole.replace(":%S", "")


class Lookback(Strict):
    """A primary event known only to lie some time before its foreign event."""

    lookback: Duration = Field(
        description="How long before its foreign event it may lie. Of several primary events of one id there, the "
        "latest up to the foreign event is joined, or else the first after it."
    )
    skew: Duration = Field(1.0, description="How long after its foreign event it may lie, where clocks differ.")


def _kind_of_time(value: Any) -> str:
    if isinstance(value, TimeColumn | Lookback):
        return "column" if isinstance(value, TimeColumn) else "lookback"
    if not isinstance(value, dict):
        return "name"
    return "column" if {"column", "format", "zone"} & set(value) else "lookback"


# One of several forms, of which the value itself shows which is meant, so that only that one's errors are reported.
EventTime = Annotated[
    Annotated[Path, Tag("name")] | Annotated[TimeColumn, Tag("column")],
    Discriminator(lambda value: "name" if _kind_of_time(value) == "name" else "column"),
]
PrimaryTime = Annotated[
    Annotated[Path, Tag("name")] | Annotated[TimeColumn, Tag("column")] | Annotated[Lookback, Tag("lookback")],
    Discriminator(_kind_of_time),
]


AnySource = Annotated[Files | Kafka | Delta | OfPipeline, Field(discriminator="kind")]


class Primary(Strict):
    """Where a stream's records lie, and which of their columns are ids and times."""

    source: AnySource = Field(description="Where its records come from, by `kind`.")
    event_id: Ids = Field(
        description="Column that names the event, by path (`meta.id`), text or an integer; or the columns that the id "
        "is made of."
    )
    event_time: EventTime = Field(
        description="`embedded` (in an id `ip:pid:micros`), `uuid7`, a column, or `{column, format, zone}` for another "
        "form."
    )
    where: Conditions = ()

    @field_validator("event_id")
    @classmethod
    def _of_whole_records(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            path = parse_path(name)
            at = next((at for at, step in enumerate(path[:-1]) if isinstance(step, int)), None)
            if at is not None:
                array = path_text(path[:at])
                raise ValueError(
                    f"{name} names one element of the array {array}, and the others would be no events; "
                    f"write source.records: {array} and {path_text(path[at + 1 :])}"
                )
        return value


class Foreign(Primary):
    """The stream that looks up: by the id of a primary event, or by a key that both have and the time."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["primary_id", "primary_time"], "properties": {"match": {"type": "null"}}},
                {
                    "required": ["match"],
                    "properties": {"primary_id": {"type": "null"}, "primary_time": {"type": "null"}},
                },
            ]
        }
    )

    match: Match | None = Field(
        None,
        description="In place of `primary_id` and `primary_time`: the last or first primary event of the same key "
        "within a time.",
    )
    primary_id: Ids | None = Field(
        None,
        validate_default=True,
        description="Column that holds the primary event's id, or the columns that it is made of. Needed unless "
        "`match` is given.",
    )
    primary_time: PrimaryTime | None = Field(
        None,
        validate_default=True,
        description="The primary event's time, as an event time, or `{lookback: 2h}`: at most that long before the "
        "foreign event. Needed unless `match` is given.",
    )

    @field_validator("primary_id", "primary_time")
    @classmethod
    def _or_match(cls, value: Any, info: ValidationInfo) -> Any:
        if "match" not in info.data:  # it is wrong itself
            return value
        if value is None and info.data["match"] is None:
            raise PydanticKnownError("missing")
        if value is not None and info.data["match"] is not None:
            raise ValueError("is of no use beside match, which says what is joined; remove one of the two")
        return value


def columns_of(stream: Primary) -> dict[str, tuple[str, ...]]:
    """Fields of a stream's part of the pipeline's file that name columns, and the columns."""
    named: dict[str, tuple[str, ...]] = {}
    for field in ("event_id", "event_time", "primary_id", "primary_time"):
        value = getattr(stream, field, None)
        if isinstance(value, TimeColumn):
            named[field] = value.column
        elif isinstance(value, tuple):
            named[field] = value
        elif isinstance(value, str) and value not in IN_ID:
            named[field] = (value,)
    return named
