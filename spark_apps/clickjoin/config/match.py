"""Joins by a key and time: which columns of both streams hold the key, and which of the events with it is meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from clickjoin.config.types import Duration, Ids, Strict
from clickjoin.config.where import CONDITIONS
from clickjoin.model.field_path import parse_path
from clickjoin.model.places import TOUCH, TOUCH_COUNT, TOUCHES
from clickjoin.model.where import Condition

MOST_TOUCHES = 1000  # of a row, unless its pipeline says another number


def _each_side(value: Any) -> Any:
    """`on: user` is short for `on: {foreign: user, primary: user}`."""
    sides = isinstance(value, dict) and not {"foreign", "primary"}.isdisjoint(value)
    return value if sides else {"foreign": value, "primary": value}


def _key(value: Any) -> Any:
    """`user` is short for a list of it; a list of columns, all of which are equal, or {first: […]}."""
    return value if isinstance(value, dict) else {"all": value}


class Key(Strict):
    """The columns of one stream's records that hold the key: all of them, or the first that is set."""

    all: Ids | None = Field(None, description="Columns that are all part of the key.")
    first: Ids | None = Field(None, description="Columns of which the first that is set is the key.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Key:
        if (self.all is None) == (self.first is None):
            raise ValueError("names no key; write a column, a list of columns, or {first: [a, b]}")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names."""
        return self.all or self.first or ()

    def __str__(self) -> str:
        return ("first of " if self.first else "") + ", ".join(self.columns)


_AKey = Annotated[Key, BeforeValidator(_key, json_schema_input_type=Ids | Key)]


class On(Strict):
    """Where each stream's records hold the key."""

    foreign: _AKey = Field(description="Key of the foreign stream's records: a column, a list, or `{first: [a, b]}`.")
    primary: _AKey = Field(description="Key of the primary stream's records: a column, a list, or `{first: [a, b]}`.")


class Match(Strict):
    """Which primary events of the same key a foreign event is joined to: by the time between them."""

    on: Annotated[On, BeforeValidator(_each_side, json_schema_input_type=Ids | Key | On)] = Field(
        description="The key: a column of both streams, or `{foreign: a, primary: b}`. A list: all are equal; "
        "`{first: [a, b]}`: the first that is set. "
        "Fixed once the tables exist."
    )
    pick: Literal["last", "first", "all"] = Field(
        "last",
        description="Which of several primary events is joined. `all`: the last, and columns `touches` and "
        "`touch_count` of all of them.",
    )
    limit: int | None = Field(
        None,
        ge=2,
        description="Of `all`: how many touches a row keeps at most, the first and the newest. Default: 1000.",
    )
    prefer: Annotated[tuple[Condition, ...], CONDITIONS] = Field(
        (),
        description="Primary events that go before all others of a window: by field a value, a list, `{not: …}` or "
        "`{exists: true}`, such as `{channel: {not: direct}}`. One of the others is joined where there is none. "
        "Fixed once the tables exist.",
    )
    within: Duration = Field(description="How long before its foreign event a primary event may lie, the end included.")
    skew: Duration = Field(0.0, description="How long after its foreign event it may lie, where clocks differ.")
    late: Literal["wait"] = Field(
        "wait", description="A foreign event is decided once the primary stream has passed its time."
    )

    @model_validator(mode="after")
    def _of_all(self) -> Match:
        if self.pick == "all" and self.prefer:
            raise ValueError("prefer chooses one touch, and pick: all keeps each; remove prefer, or pick last or first")
        if self.pick != "all" and self.limit is not None:
            raise ValueError("limit is how many touches pick: all keeps; remove it, or write pick: all")
        return self

    @property
    def most(self) -> int:
        """How many touches a row of `all` keeps at most."""
        return self.limit or MOST_TOUCHES

    def require_flat(self, source: Any) -> None:
        """Errors: ValueError where `prefer` looks into objects of a source of CSV, whose records hold none."""
        is_csv = getattr(source, "format", None) == "csv" or re.search(r"\.csv(\.|$)", getattr(source, "path", ""))
        for one in self.prefer if is_csv else ():
            if len(parse_path(one.path)) > 1:
                raise ValueError(
                    f"foreign.match.prefer: {one.path} leads into an object, and records of CSV hold none; put the "
                    f"column's name in backticks: '`{one.path}`'"
                )


def require_room(columns: Iterable[str], adapter: str) -> None:
    """Check that an output has room for all touches. `adapter`: of the pipeline's own. Errors: ValueError."""
    if adapter:
        raise ValueError(
            f"foreign.match.pick: all takes what `output` says of each touch, and adapter {adapter} makes the output; "
            "remove adapter, or pick last or first"
        )
    taken = {name.lower() for name in columns} & {*TOUCH, TOUCHES, TOUCH_COUNT}
    if taken:
        raise ValueError(
            f"output.columns: {', '.join(sorted(taken))} is a column of what foreign.match.pick: all adds; give yours "
            "another name"
        )
