"""A user's own expectations: checked before anything is computed, then run by Great Expectations on Spark's rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.config.quality import did_you_mean
from clickjoin.model.errors import ConfigError
from clickjoin.model.places import RECORDS
from clickjoin.quality import expect
from clickjoin.quality.checks import Outcome
from clickjoin.schemas import BY_NAME

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from clickjoin.config import Pipeline
    from clickjoin.config.quality import Expectation

_COLUMNS = ("column_A", "column_B")  # arguments that name a column each
_LISTS = ("column_list",)
_CASTS = {"number": "double", "boolean": "boolean"}
_SAMPLES = 5


@dataclass(frozen=True)
class Names:
    """What a column can be called: `columns` of the table, and `fields` of its text columns with their JSON types."""

    columns: tuple[str, ...]
    fields: Mapping[str, Mapping[str, str]]

    def place(self, name: str) -> tuple[str, str, str] | None:
        """Text column, field and JSON type of a field's name; None where it is none that is known."""
        base, dot, rest = name.partition(".")
        tries = [(base, rest)] if dot and base in self.fields else []
        tries += [("payload", name)] if "payload" in self.fields else []
        return next(((text, key, self.fields[text][key]) for text, key in tries if key in self.fields[text]), None)

    def all(self) -> list[str]:
        """Every name there is."""
        fields = [f"{text}.{key}" for text, keys in self.fields.items() for key in keys]
        return [*self.columns, *fields, *self.fields.get("payload", {})]


class Own:
    """The expectations of a pipeline's file, those that are disabled left out."""

    def __init__(self, pipeline: Pipeline) -> None:
        quality = pipeline.quality
        self._pipeline = pipeline.pipeline
        numbered = list(enumerate(quality.expectations))
        self._wanted = [(at, one) for at, one in numbered if not quality.disabled(one.table, one.check)]
        self._levels = {at: quality.level(one.table, one.check, one.level) for at, one in self._wanted}

    def suites(self) -> list[str]:
        """Suites that have any."""
        return sorted({one.table for _, one in self._wanted})

    def require_sound(self) -> None:
        """Make each expectation once. Errors: ConfigError for a name or an argument that there is not."""
        for at, one in self._wanted:
            self._made(at, one, one.column, one.args)

    def require_columns(self, names: Mapping[str, Names]) -> None:
        """Check every column, of suites that `names` has. Errors: ConfigError for one that there is not."""
        for at, one in self._wanted:
            for field, column in _named(one) if one.table in names else ():
                known = names[one.table]
                if column not in known.columns and not known.place(column):
                    raise self._wrong(
                        at,
                        field,
                        f"`{one.table}` has no column {column!r}, and its records no such field"
                        f"{did_you_mean(column, known.all())}",
                    )

    def run(self, suite: str, rows: DataFrame, names: Names | None) -> list[tuple[Outcome, Any]]:
        """What came of the expectations on a suite's rows, with Great Expectations' own results.

        `names` None: there are no rows, and nothing is decided. Errors: ConfigError where one cannot be worked out.
        """
        mine = [(at, one) for at, one in self._wanted if one.table == suite]
        if names is None:
            return [(self._undecided(at, one), None) for at, one in mine]
        alias = {column: _alias(column, names) for _, one in mine for _, column in _named(one)}
        fields = {short: _value(column, names) for column, short in alias.items() if column not in names.columns}
        made = [self._renamed(at, one, alias) for at, one in mine]
        results = expect.on_rows(suite, rows.withColumns(fields), made)
        return [(self._outcome(at, one, result), result) for (at, one), result in zip(mine, results, strict=True)]

    def _renamed(self, at: int, one: Expectation, alias: Mapping[str, str]) -> Any:
        args = dict(one.args)
        for key in _COLUMNS:
            if isinstance(args.get(key), str):
                args[key] = alias[args[key]]
        for key in _LISTS:
            if isinstance(args.get(key), list):
                args[key] = [alias.get(column, column) for column in args[key]]
        return self._made(at, one, alias[one.column] if one.column else None, args)

    def _made(self, at: int, one: Expectation, column: str | None, args: Mapping[str, Any]) -> Any:
        expect.context()
        from great_expectations.expectations.registry import (
            get_expectation_impl,
            list_registered_expectation_implementations,
        )

        known = list_registered_expectation_implementations()
        if one.expectation not in known:
            missing = f"Great Expectations has no {one.expectation}{did_you_mean(one.expectation, known)}"
            raise self._wrong(at, "expectation", missing)
        kind: Any = get_expectation_impl(one.expectation)
        given = dict(args) | ({"column": column} if column else {})
        meta = {"check": one.check}
        try:
            return kind(**given, severity=expect.SEVERITY[self._levels[at]], meta=meta)
        except Exception as error:
            raise self._wrong(at, *_why(error, kind, one)) from error

    def _wrong(self, at: int, field: str, why: str) -> ConfigError:
        return ConfigError(
            f"pipeline {self._pipeline}: quality.expectations.{at}.{field}: {why}",
            remedy="Fix it in the pipeline's file; nothing was checked and nothing written",
        )

    def _undecided(self, at: int, one: Expectation) -> Outcome:
        said = _said(one)
        return Outcome(
            one.table, one.check, one.expectation, one.column, self._levels[at], None, None, said,
            detail="there are no rows of the date",
        )  # fmt: skip

    def _outcome(self, at: int, one: Expectation, result: Any) -> Outcome:
        if raised := _raised(result.exception_info):
            raise self._wrong(at, "args", f"it cannot be worked out ({raised})")
        found = result.result or {}
        bad = found.get("unexpected_count")
        samples = tuple(dict.fromkeys(map(str, found.get("partial_unexpected_list") or ())))[:_SAMPLES]
        return Outcome(
            one.table,
            one.check,
            one.expectation,
            one.column,
            self._levels[at],
            bool(result.success),
            _number(found),
            _said(one),
            None if bad is None else int(bad),
            () if result.success else samples,
            None if result.success else "an expectation of the pipeline's own file: `samples` are values that break it",
        )


def _named(one: Expectation) -> Iterable[tuple[str, str]]:
    """Fields of the pipeline's file that name a column, and the column."""
    if one.column:
        yield "column", one.column
    for key in _COLUMNS:
        if isinstance(one.args.get(key), str):
            yield f"args.{key}", one.args[key]
    for key in _LISTS:
        for column in one.args.get(key) or () if isinstance(one.args.get(key), list) else ():
            yield f"args.{key}", str(column)


def _alias(column: str, names: Names) -> str:
    """A name that Great Expectations and Spark take as it stands: none of a table's own columns, and without dots."""
    return column if column in names.columns else "field_" + re.sub(r"\W", "_", column)


def _value(column: str, names: Names) -> Column:
    text, key, kind = names.place(column) or ("payload", column, "string")
    path = "$['" + key.replace("'", "\\'") + "']"
    value = F.get_json_object(f"`{text}`", path)
    return value.try_cast(_CASTS[kind]) if kind in _CASTS else value


def _why(error: Exception, kind: Any, one: Expectation) -> tuple[str, str]:
    """Field and reason of arguments that an expectation does not take."""
    found = getattr(error, "errors", None)
    first: Mapping[str, Any] = (found() if callable(found) else [{}])[0]
    named = str((first.get("loc") or ("args",))[0])
    message = str(first.get("msg") or str(error).splitlines()[0])
    if named in ("args", "__root__"):
        return "args", message
    if "extra" in str(first.get("type")):
        return f"args.{named}", f"{one.expectation} takes no such argument{did_you_mean(named, kind.__fields__)}"
    return (named if named == "column" else f"args.{named}"), message


def _raised(info: Any) -> str:
    """What went wrong while it was worked out, in a line; empty if nothing did."""
    infos: Sequence[Any] = [info] if "raised_exception" in (info or {}) else list((info or {}).values())
    for one in infos:
        if one and one.get("raised_exception"):
            return str(one.get("exception_message") or "no reason given").strip().splitlines()[0][:300]
    return ""


def _number(found: Mapping[str, Any]) -> float | None:
    value = found.get("observed_value", found.get("unexpected_percent"))
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _said(one: Expectation) -> str:
    return ", ".join(f"{name}: {value}" for name, value in one.args.items()) or one.expectation.replace("_", " ")


def table_names(suite: str, columns: Iterable[str], fields: Mapping[str, Mapping[str, str]]) -> Names:
    """What columns of a suite's table can be called. `fields`: by stream, as their JSON types are known.

    The output of adapter BothRecords holds both records as text in columns foreign_record and primary_record.
    """
    held = tuple(columns) if suite == "joined" else tuple(BY_NAME[suite].names)
    texts = {"payload": fields[suite]} if suite in fields else {}
    if suite == "joined":
        texts = {name: fields[stream] for stream, name in RECORDS.items() if name in held and stream in fields}
    return Names(held, texts)
