"""A topic of Kafka as a source: where it is, how its messages are written, and how its cluster is reached."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator

from clickjoin.config.types import JsonTexts, Strict, distinct, separates

# Options of librdkafka whose values nobody may read in a file.
SECRETS = (
    "sasl.password",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.private.key.pem",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.password",
)
_SECRET = re.compile(r"password|secret|passphrase|private|jaas|token$|\.key\.pem$")
_OURS = {
    "bootstrap.servers": "write it as `servers`",
    "metadata.broker.list": "write it as `servers`",
    "group.id": "write it as `group`",
    "auto.offset.reset": "an offset that is gone is reported, never passed over; where to begin is said by `from`",
    "enable.auto.commit": "offsets are the journal's; they are committed once their batch is settled",
    "enable.auto.offset.store": "offsets are the journal's; they are committed once their batch is settled",
    "isolation.level": "what is not committed is never read",
    "enable.partition.eof": "where a partition ends is asked for in any case",
    "group.instance.id": "no member of the group is ever made: partitions are assigned by the journal",
    "group.protocol": "no member of the group is ever made: partitions are assigned by the journal",
}


def _text(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int | float) else value


_Value = Annotated[str, BeforeValidator(_text, json_schema_input_type=str | bool | int | float)]
_Servers = Annotated[
    str,
    BeforeValidator(
        lambda value: ",".join(map(str, value)) if isinstance(value, list) else value,
        json_schema_input_type=str | list[str],
    ),
]


class Kafka(Strict):
    """A topic of Kafka, whose messages are records."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    kind: Literal["kafka"] = Field(description="A topic of Kafka.")
    servers: _Servers = Field(min_length=1, description="Brokers to ask first: `host:port`, or a list of them.")
    topic: str = Field(
        pattern=r"^[A-Za-z0-9._-]{1,249}$",
        description="Name of the topic; both streams may read one, each with a `where`.",
    )
    begin: Literal["earliest", "latest"] | datetime = Field(
        "earliest",
        alias="from",
        description="Where the first look begins: `earliest`, `latest` or a time. Partitions and topics that come "
        "later are read from their beginning.",
    )
    format: Literal["json", "csv"] = Field(
        "json",
        description="Format of a message's value: one JSON object, over several lines if need be, or fields of CSV.",
    )
    separator: str = Field(",", min_length=1, max_length=1, description="Of CSV: one character between fields.")
    columns: tuple[str, ...] | None = Field(None, description="Of CSV: names of the fields of a message.")
    json_texts: JsonTexts = Field(
        (),
        alias="json",
        description="Fields whose text is JSON, such as `after`: what they hold becomes part of the record.",
    )
    metadata: tuple[Literal["key", "headers", "timestamp"], ...] = Field(
        (),
        description="What of a message becomes part of its record, beside its value: fields `_key`, `_headers` (such "
        "as `_headers.id`) and `_timestamp`.",
    )
    group: str = Field(
        "clickjoin",
        min_length=1,
        description="Offsets are committed to the consumer group `GROUP-PIPELINE-REPLICA`, which shows the lag.",
    )
    options: Mapping[str, _Value] = Field(
        {},
        description="Options of librdkafka, as they are, such as `security.protocol` and `ssl.ca.location`. Secrets "
        "are taken from the environment.",
    )
    environment: str = Field(
        "CLICKJOIN_KAFKA",
        pattern=r"^[A-Z][A-Z0-9_]*$",
        description="What the names of variables with secrets begin with, so that two clusters can have two.",
    )

    _separates = field_validator("separator")(separates)
    _distinct = field_validator("columns")(distinct)

    @field_validator("begin")
    @classmethod
    def _aware(cls, value: str | datetime) -> str | datetime:
        return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value

    @model_validator(mode="before")
    @classmethod
    def _allowed(cls, raw: Any) -> Any:
        """Refused before anything else is looked at, so that no message shows the value of a secret."""
        options = raw.get("options") if isinstance(raw, Mapping) else None
        for name in options if isinstance(options, Mapping) else ():
            if _SECRET.search(str(name)):
                environment = raw.get("environment", "CLICKJOIN_KAFKA")
                raise ValueError(
                    f"option {name} is a secret, and this file is no place for one; remove it, and set "
                    f"{variable(str(environment), str(name))} in the environment of every process that reads from Kafka"
                )
            if str(name) in _OURS:
                raise ValueError(f"option {name} is not for this file: {_OURS[str(name)]}; remove it")
        return raw

    @model_validator(mode="after")
    def _fits(self) -> Kafka:
        if self.format == "csv" and self.columns is None:
            raise ValueError("a message of CSV has no header; name its fields in `columns`")
        if self.format == "json" and (self.columns is not None or self.separator != ","):
            raise ValueError("separator and columns are for CSV; remove them, or write format: csv")
        if (self.json_texts or self.metadata) and self.format == "csv":
            name, why = ("json", "all fields of CSV are text") if self.json_texts else ("metadata", "CSV has no fields")
            raise ValueError(f"{name} is for records of JSON; remove it, for {why}")
        return self

    @property
    def path(self) -> str:
        """What people call it."""
        return f"kafka:{self.topic}"

    def secrets(self, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """Options whose values the environment holds, and the variables that do."""
        held = ((option, variable(self.environment, option)) for option in SECRETS)
        return tuple(pair for pair in held if pair[1] in environment)


def variable(prefix: str, option: str) -> str:
    """The variable that holds the value of an option."""
    return f"{prefix}_{option.upper().replace('.', '_')}"
