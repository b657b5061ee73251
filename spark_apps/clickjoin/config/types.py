"""What a field of a pipeline's file can hold besides text and numbers: durations, sizes, places on this machine."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from clickjoin.model.errors import ConfigError
from clickjoin.model.field_path import parse_path
from clickjoin.model.span import seconds_of


class Strict(BaseModel):
    """Refuses fields that it does not know, and never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


_SIZES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def _bytes(value: Any) -> Any:
    """A size such as `256MB`, in bytes."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = re.fullmatch(r"\s*(\d+)\s*((?:[KMG]i?)?B)\s*", value, re.IGNORECASE) if isinstance(value, str) else None
    if not found:
        raise ValueError(f"{value!r} is not a size; write a number and B, KB, MB or GB, such as 256MB")
    return int(found.group(1)) * _SIZES[found.group(2).upper()]


# What editors check, and by which the reference knows such a field.
DURATION, SIZE = r"^\d+(\.\d+)?(ms|s|m|h|d|w)$", r"^\s*\d+\s*([KMGkmg][Ii]?)?[Bb]\s*$"
Duration = Annotated[float, BeforeValidator(seconds_of, json_schema_input_type=Annotated[str, Field(pattern=DURATION)])]
SizeOrZero = Annotated[
    int, BeforeValidator(_bytes, json_schema_input_type=int | Annotated[str, Field(pattern=SIZE)]), Field(ge=0)
]
Size = Annotated[SizeOrZero, Field(gt=0)]


_BUCKET = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"


def _place(value: str) -> str:
    """A folder on this machine, or on S3."""
    if value.startswith(("s3://", "s3a://", "s3n://")):
        if not re.fullmatch(rf"{_BUCKET}(/.*)?", value):
            raise ValueError(f"{value!r} is no place on S3; write s3://BUCKET/PREFIX, the bucket of 3 to 63 characters")
        place = value.rstrip("/")
        if "?" in place or "#" in place or {"", ".", ".."} & set(place.removeprefix("s3://").split("/")):
            raise ValueError(
                f"{value!r}: Delta's clients do not agree on keys with ?, #, //, . or ..; write another prefix"
            )
        return place
    if _is_elsewhere(value):
        raise ValueError(
            f"{value!r} is neither a folder of this machine nor on S3; write a path, file:///path, or s3://BUCKET/PREFIX"
        )
    return value


def _is_elsewhere(value: str) -> bool:
    """Whether it is a URI that names no file of this machine; `file:/x` would be taken for a folder called `file:`."""
    return ("://" in value or value.startswith("file:")) and not value.startswith("file:///")


def _logs(value: str) -> str:
    """A glob of files on this machine, or of objects on S3."""
    if value.startswith(("s3://", "s3a://", "s3n://")):
        if not re.fullmatch(rf"{_BUCKET}/.*[^/]", value):
            raise ValueError(f"{value!r} names no objects on S3; write s3://BUCKET/, and a glob of their keys")
        return value
    if _is_elsewhere(value):
        raise ValueError(
            f"{value!r} is neither on this machine nor on S3; write a path, file:///path, or s3://BUCKET/KEYS"
        )
    return value


Place = Annotated[
    str,
    Field(min_length=1, json_schema_extra={"pattern": f"^(file:///|{_BUCKET}(/|$)|(?!.*://|file:))"}),
    AfterValidator(_place),
]
Logs = Annotated[
    str,
    Field(min_length=1, json_schema_extra={"pattern": f"^(file:///|{_BUCKET}/.|(?!.*://|file:))"}),
    AfterValidator(_logs),
]


def listed(value: Any) -> Any:
    """One text as a list of it: `key: item_id` is short for `key: [item_id]`."""
    return (value,) if isinstance(value, str) else value


def sound_path(value: str) -> str:
    """A path of a value in a record. Errors: ValueError."""
    try:
        parse_path(value)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return value


_Text = Annotated[str, Field(min_length=1)]
Path = Annotated[_Text, AfterValidator(sound_path)]
# One column, or several whose values make up the id.
Ids = Annotated[
    tuple[Path, ...],
    Field(min_length=1, max_length=16),
    BeforeValidator(listed, json_schema_input_type=_Text | Annotated[list[_Text], Field(min_length=1)]),
]


def keys_of(value: str) -> tuple[str, ...]:
    """The keys of a path through objects alone. Errors: ValueError."""
    path = parse_path(sound_path(value))
    if not all(isinstance(step, str) for step in path):
        raise ValueError(f"{value!r} leads through an element of an array; name keys alone, such as detail.events")
    return tuple(map(str, path))


def _through_objects(value: tuple[str, ...]) -> tuple[str, ...]:
    for path in value:
        keys_of(path)
    return value


# Fields of a record whose text is JSON.
JsonTexts = Annotated[
    tuple[_Text, ...],
    Field(max_length=16),
    BeforeValidator(listed, json_schema_input_type=_Text | list[_Text]),
    AfterValidator(_through_objects),
]


def separates(value: str) -> str:
    """A separator of fields. Errors: ValueError."""
    if not value.isascii() or value in '"\r\n\0':
        raise ValueError(f'{value!r} separates no fields; write one ASCII character such as ";" or "\\t"')
    return value


def distinct(value: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Names of columns. Errors: ValueError."""
    if value is not None and (not value or len(set(value)) < len(value) or not all(value)):
        raise ValueError("columns must be names that differ, one for each field of a line")
    return value
