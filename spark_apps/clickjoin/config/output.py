"""What the output holds of the two records, or of the one: typed columns, and whole records."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from clickjoin.config.types import Strict, sound_path
from clickjoin.model.field_path import TypedColumn, parse_path
from clickjoin.model.places import RECORD, RECORDS

DEFAULT_ADAPTER = "clickjoin.joiner.adapter:BothRecords"
TYPES = ("STRING", "BIGINT", "INT", "DOUBLE", "FLOAT", "BOOLEAN", "DECIMAL(p, s)", "DATE", "TIMESTAMP")
_DECIMAL = re.compile(r"DECIMAL\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)")
_NAME = re.compile(r"[^\W\d_]\w{0,127}")
_STREAMS = ("foreign", "primary")


class Column(Strict):
    """One value of a record, with a type."""

    source: str = Field(
        alias="from",
        description="`foreign.PATH` or `primary.PATH`, such as `primary.meta.ids[0]`; of one stream `stream.PATH`.",
    )
    type: str | None = Field(
        None,
        description="Its SQL type, such as `BIGINT`. Default: that of table `joined`, or of what the logs hold when "
        "the column is made.",
    )
    default: str | bool | int | float | date | datetime | None = Field(
        None, description="Value of the column where a record has none, or null."
    )

    @field_validator("source")
    @classmethod
    def _placed(cls, value: str) -> str:
        stream, *path = parse_path(sound_path(value))
        if stream not in (*_STREAMS, "stream") or not path or not isinstance(path[0], str):
            raise ValueError(
                f"{value!r} is in no record; write foreign. or primary. (of one stream: stream.), and the path of a "
                "field in it"
            )
        return value

    @field_validator("type")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is None or (name := value.strip().upper()) in TYPES:
            return None if value is None else name
        found = _DECIMAL.fullmatch(name)
        if not found:
            raise ValueError(f"{value!r} is no type of a column; write one of {', '.join(TYPES)}")
        precision, scale = int(found[1]), int(found[2])
        if not 1 <= precision <= 38 or scale > precision:
            raise ValueError(f"{value!r} has no such digits: write 1 to 38, and no more of them after the point")
        return f"DECIMAL({precision}, {scale})"

    def typed(self, name: str) -> TypedColumn:
        """It as the kernel knows it. Needs a type."""
        stream, *path = parse_path(self.source)
        default = self.default.isoformat() if isinstance(self.default, date) else self.default
        text = None if default is None else json.dumps(default, ensure_ascii=False)
        place = "foreign" if stream == "stream" else str(stream)  # where the records of one stream lie
        return TypedColumn(name, place, tuple(path), self.type or "", text)


def _whole(value: Any) -> Any:
    """`item: foreign.item_id` is short for `item: {from: foreign.item_id}`."""
    return {"from": value} if isinstance(value, str) else value


def _listed(value: Any) -> Any:
    """`partition: event_date` is short for `partition: [event_date]`."""
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple) else value
    if names not in (("bucket",), ("event_date",)):
        raise ValueError(f"{value!r} is no partition of `joined`; write [bucket] or [event_date]")
    return names


class Output(Strict):
    """What `joined` holds besides ids and times."""

    columns: Mapping[str, Annotated[Column, BeforeValidator(_whole, json_schema_input_type=str | Column)]] = Field(
        {}, description="Columns of `joined` by name, such as `item: foreign.item_id`."
    )
    records: Literal["none", "foreign", "primary", "both", "record"] = Field(
        "both", description="Whole records that `joined` keeps as JSON; of one stream `record` or `none`."
    )
    partition: Annotated[tuple[Literal["bucket", "event_date"]] | None, BeforeValidator(_listed)] = Field(
        None,
        description="One folder of `joined` a date (`event_date`), or an hour (`bucket`). Fixed once the tables exist. "
        "Default: `[event_date]`; of a lake that is there, its own.",
    )
    strict: bool = Field(
        False, description="Whether a record with a value that does not fit its column goes to quarantine as it lands."
    )

    @model_validator(mode="after")
    def _sound(self) -> Output:
        seen: dict[str, str] = {}
        for name in self.columns:
            if not _NAME.fullmatch(name):
                raise ValueError(f"column name {name!r}: write a letter, then letters, digits and _; 128 at most")
            if name.lower() in seen:
                raise ValueError(f"columns {seen[name.lower()]} and {name} differ in case alone; name one otherwise")
            if name.lower() in (*RECORDS.values(), RECORD):
                raise ValueError(f"column name {name} is that of the whole record; give the column another name")
            seen[name.lower()] = name
        if self.strict and not self.columns:
            raise ValueError("strict asks nothing where there are no columns; add columns, or remove it")
        return self

    @property
    def is_default(self) -> bool:
        """Whether it says nothing, and the adapter alone makes the output."""
        return not self.columns and self.records == "both"

    @property
    def whose(self) -> str:
        """Who says which columns there are."""
        return "the adapter" if self.is_default else "output.columns"

    @property
    def kept(self) -> tuple[str, ...]:
        """Columns of the records that are kept whole."""
        if self.records in ("both", "none"):
            return tuple(RECORDS.values()) if self.records == "both" else ()
        return (RECORDS.get(self.records, RECORD),)

    def of(self, stream: str) -> tuple[TypedColumn, ...]:
        """The columns of a stream's records whose type is known."""
        typed = (column.typed(name) for name, column in self.columns.items() if column.type)
        return tuple(column for column in typed if column.stream == stream)

    def with_types(self, types: Mapping[str, str]) -> Output:
        """The same with types (name to Spark SQL type) for columns that have none."""
        columns = {
            name: column if column.type or name not in types else column.model_copy(update={"type": types[name]})
            for name, column in self.columns.items()
        }
        return self.model_copy(update={"columns": columns})
