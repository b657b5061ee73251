"""`where` of a stream: which records of its log are its own, as a pipeline's file says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from clickjoin.config.types import sound_path
from clickjoin.model.where import Condition, Scalar, text_of

_FORMS = "write a value, a list of values, {not: …} or {exists: true}"


def _conditions(raw: Any) -> Any:
    if isinstance(raw, list | tuple) and all(isinstance(one, list | tuple) and len(one) == 3 for one in raw):
        return tuple(Condition(path, tuple(values), inside) for path, values, inside in raw)  # as it is dumped
    if not isinstance(raw, Mapping) or not raw:
        raise ValueError("where maps a field to what it holds, such as {type: click}")
    if odd := [path for path in raw if not isinstance(path, str)]:
        raise ValueError(f"{odd[0]!r} is no field's name; YAML reads null, true and numbers so: put it in quotes")
    return tuple(_condition(sound_path(path), wanted) for path, wanted in raw.items())


def _condition(path: str, wanted: Any) -> Condition:
    if not isinstance(wanted, Mapping):
        return Condition(path, _texts(path, wanted))
    if list(wanted) == ["not"]:
        return Condition(path, _texts(path, wanted["not"]), inside=False)
    if list(wanted) == ["exists"] and isinstance(wanted["exists"], bool):
        return Condition(path, (None,), inside=not wanted["exists"])
    raise ValueError(f"{path}: {dict(wanted)} is no condition; {_FORMS}")


def _texts(path: str, wanted: Any) -> tuple[str, ...]:
    values = wanted if isinstance(wanted, list) else [wanted]
    texts = [text_of(value) for value in values]
    if not values or None in texts:
        raise ValueError(f"{path}: {wanted!r} is equal to no value; {_FORMS} ({{exists: false}}: there is none)")
    return tuple(dict.fromkeys(text for text in texts if text is not None))


_Wanted = Scalar | list[Scalar] | dict[str, Scalar | list[Scalar]]
CONDITIONS = BeforeValidator(_conditions, json_schema_input_type=dict[str, _Wanted])
Conditions = Annotated[
    tuple[Condition, ...],
    CONDITIONS,
    Field(
        description="Which records of the log are this stream's: by field a value, a list, `{not: …}` or "
        "`{exists: true}`. Fixed once the tables exist. Default: all records."
    ),
]
