"""Section `quality` of a pipeline's file: what is asked of a date's data, and how much it may differ from others."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from clickjoin.config.types import Duration, Strict

Suite = Literal[  # whose rows expectations can be asked of
    "joined", "primary", "foreign", "registry", "unjoinable", "expired", "filtered", "quarantine"
]
SIDES = ("unjoinable", "expired", "filtered", "quarantine")
Level = Literal["warn", "fail"]
_STREAM = (
    *("landed_once", "repeat_rate", "volume", "freshness"),
    *("fields_kept", "fields_new", "not_null.*", "null_rate.*"),
)
# Every check of our own, by suite; `*` stands for the columns and fields that there are.
CHECKS: dict[str, tuple[str, ...]] = {
    "joined": (
        *(
            "unique_ids",
            "ids_stamped_once",
            "known_ids",
            "completeness",
            "delay_p50",
            "delay_p90",
            "delay_p99",
            "columns_kept",
        ),
        *("columns_new", "not_null.*", "null_rate.*", "misfit_rate.*"),
    ),
    "primary": _STREAM,
    "foreign": (*_STREAM, "every_input_accounted_for", "quarantine_rate"),
    "registry": (
        *("unique_ids", "known_outcomes", "claims_have_outputs", "outputs_have_claims", "claims_agree", "not_null.*"),
        "token_form",
    ),
    "signals": ("unique_ids", "every_event_counted", "late_rate"),
}
# Arguments of an expectation that come from other fields than `args`.
_OURS = ("column", "meta", "severity", "notes", "description", "id", "batch_id", "result_format", "catch_exceptions")


class _Ordered(Strict):
    """What is a warning first, and then a failure."""

    warn: float | None
    fail: float | None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.warn is not None and self.fail is not None and self.warn > self.fail:
            raise ValueError("warn is past fail, so it would never be heard; make it the smaller one")
        return self


class Limit(_Ordered):
    """How far a figure may go before it is a warning, and before it is a failure; null: as far as it likes."""

    warn: float | None = Field(None, ge=0)
    fail: float | None = Field(None, ge=0)


class Late(_Ordered):
    """How long something may take before it is a warning, and before it is a failure; null: as long as it likes."""

    warn: Duration | None = None
    fail: Duration | None = None


class Expectation(Strict):
    """An expectation of Great Expectations' own, on the rows of a date of one table."""

    table: Suite = Field(description="whose rows: those of the output, a stream, the registry or a side output")
    expectation: str = Field(
        pattern=r"^expect_[a-z0-9_]+$", description="its name, such as expect_column_values_to_be_between"
    )
    column: str | None = Field(None, min_length=1, description="a column of the table, or a field of its records")
    args: dict[str, Any] = Field(default_factory=dict, description="its other arguments, such as min_value: 0")
    level: Level = Field("fail", description="what it means if it does not pass")
    name: str | None = Field(
        None, pattern=r"^[a-z0-9_.-]{1,80}$", description="name of the check; default: the expectation and the column"
    )

    @model_validator(mode="after")
    def _apart(self) -> Expectation:
        if taken := sorted(set(self.args) & set(_OURS)):
            raise ValueError(f"args: {', '.join(taken)} is no argument; the other fields say it")
        return self

    @property
    def check(self) -> str:
        """Name of the check."""
        return self.name or check_of(self.expectation, self.column)


class Quality(Strict):
    """What a date's data must be like. Shares are of 1; rises and drops are against the median of earlier dates."""

    history_days: int = Field(28, ge=1, le=400, description="how many days before a date it is checked against")
    history_least: int = Field(3, ge=1, description="dates among these that it takes to decide anything")
    volume_drop: Limit = Field(Limit(warn=0.25, fail=0.4), description="share of the usual number of ids that may lack")
    volume_rise: Limit = Field(Limit(warn=1), description="share of the usual number of ids that may come on top")
    completeness_drop: Limit = Field(Limit(warn=0.02, fail=0.1), description="fall of the share of ids that are joined")
    completeness_lack: Limit = Field(Limit(), description="share of ids that may be not joined, whatever is usual")
    null_rise: Limit = Field(Limit(warn=0.05, fail=0.25), description="rise of the share of records without a field")
    delay_growth: Limit = Field(Limit(warn=3), description="times the usual delay from event to output (from 10 s on)")
    delay_p99: Late = Field(Late(), description="delay that 99 in 100 stay below, whatever is usual")
    freshness: Late = Field(
        Late.model_validate({"warn": "2h"}), description="time without events at the end of the date"
    )
    quarantine: Limit = Field(Limit(warn=0.01, fail=0.1), description="share of records in quarantine")
    misfits: Limit = Field(
        Limit(warn=0.01, fail=0.1), description="share of the values of a typed column that do not fit its type"
    )
    late: Limit = Field(Limit(warn=0.01), description="share of events that came behind the watermark of processing")
    repeats: Limit = Field(Limit(warn=0.1), description="share of records whose id was there before")
    sample: int = Field(1_000_000, ge=1000, description="records of a stream whose fields are profiled")
    levels: dict[str, Level] = Field(default_factory=dict, description="level by table.check, or by a pattern with *")
    disable: tuple[str, ...] = Field((), description="checks that are left out, as table.check or a pattern with *")
    expectations: tuple[Expectation, ...] = Field((), description="your own")

    @field_validator("expectations")
    @classmethod
    def _unique(cls, value: tuple[Expectation, ...]) -> tuple[Expectation, ...]:
        seen: set[tuple[str, str]] = set()
        for own in value:
            key = (own.table, own.check)
            if key in seen:
                raise ValueError(f"two are named {own.table}.{own.check}; give one of them another `name`")
            if any(fnmatchcase(own.check, known) for known in CHECKS.get(own.table, ())):
                raise ValueError(
                    f"{own.table}.{own.check} is the name of a check that is there; give it another `name`"
                )
            seen.add(key)
        return value

    @model_validator(mode="after")
    def _named(self) -> Quality:
        known = [f"{suite}.{name}" for suite, names in CHECKS.items() for name in names]
        known += [f"{own.table}.{own.check}" for own in self.expectations]
        for field, names in (("levels", tuple(self.levels)), ("disable", self.disable)):
            for name in names:
                if not any(fnmatchcase(one, name) or fnmatchcase(name, one) for one in known):
                    raise ValueError(f"{field}: there is no check {name!r}{did_you_mean(name, known)}")
        return self

    def level(self, suite: str, check: str, default: Level) -> Level:
        """The level of a check: the last of `levels` that names it, or its own."""
        named = [level for name, level in self.levels.items() if fnmatchcase(f"{suite}.{check}", name)]
        return named[-1] if named else default

    def overridden(self, suite: str, check: str) -> bool:
        """Whether `levels` names it."""
        return any(fnmatchcase(f"{suite}.{check}", name) for name in self.levels)

    def disabled(self, suite: str, check: str) -> bool:
        """Whether a check is left out."""
        return any(fnmatchcase(f"{suite}.{check}", name) for name in self.disable)


def check_of(expectation: str, column: str | None) -> str:
    """Name of a check that nobody has named."""
    short = expectation.removeprefix("expect_")
    return f"{short}.{re.sub('[^a-z0-9_.-]', '_', column.lower())}" if column else short


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """What was meant, perhaps, as the end of a message."""
    close = difflib.get_close_matches(word, sorted(set(known)), n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""
