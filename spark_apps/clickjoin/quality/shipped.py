"""The expectations that clickjoin ships, suite by suite: with the limits of the pipeline's file and what is usual.

A check with a limit of either level is two expectations, one of severity `critical` (level fail) and one of `warning`.
Where there is nothing to compare a figure with, it is measured all the same, for the dates that come after.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from clickjoin.model.reporter import figure
from clickjoin.quality import fields
from clickjoin.quality.checks import ACCOUNTED
from clickjoin.quality.frames import DERIVED, STREAMS

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.config.quality import Expectation, Late, Level, Limit, Quality
    from clickjoin.quality.history import History, Usual

OWN = "an expectation of the pipeline's own file"
SEVERITY: Mapping[str, str] = {"fail": "critical", "warn": "warning"}
REQUIRED = {
    "joined": ("event_id", "primary_id", "primary_time", "token"),
    "primary": ("event_id", "payload"),
    "foreign": ("event_id", "primary_id", "payload"),
    "registry": ("event_id", "token", "outcome"),
}
OUTCOMES = ["joined", "filtered", "unjoinable", "forgotten"]
TOKEN = r"^[^/]+/[^/]+/[^/]+/[0-9]+$"  # pipeline/replica/sequence/number
# Great Expectations measures what passes, where a rate of nulls or of repeats is what people ask for.
FLIPPED = (
    "ExpectColumnProportionOfNonNullValuesToBeBetween",
    "ExpectColumnProportionOfUniqueValuesToBeBetween",
)
_SHORT = 10.0  # seconds: below this a delay is good, however much it has grown
_YOUNG = "too few earlier dates to say what is usual"
_FIRST = "no earlier date has any: this one is what the next is checked against"
_NO_LIMIT = "it has no limit"
_VERIFY = "run `clickjoin verify` for this date: it names each id, and --repair fixes what can be fixed"
_KINDS = {"joined": ("joined", "columns"), "primary": ("primary", "fields"), "foreign": ("foreign", "fields")}


@dataclass(frozen=True)
class Shipped:
    """An expectation: of which suite, its class in Great Expectations or here, its arguments, and what it means.

    `check`: `table.name`, as the pipeline's file and table `quality` name it. `undecided`: why it says nothing.
    """

    suite: str
    check: str
    kind: str
    args: Mapping[str, Any]
    level: Level
    asks: str
    look: str = ""
    undecided: str = ""
    column: str | None = None

    @property
    def key(self) -> str:
        """Its name in its suite."""
        return f"{self.check} {self.level}"


@dataclass(frozen=True)
class Facts:
    """What a date's limits hang on beside the file.

    `fields`: names of the fields of each stream's records; `columns`: the adapter's, of the output; `gone`: by stream,
    why its rows say nothing; `joined`: rows of the output; `processed`: why processing says nothing, None without any.
    """

    history: History
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    gone: Mapping[str, str] = field(default_factory=dict)
    joined: int = 0
    processed: str | None = None
    sums: str = ""


def shipped(pipeline: Pipeline, facts: Facts) -> list[Shipped]:
    """Every expectation of a date that is not disabled, at its level."""
    made = [
        *_joined(pipeline, facts),
        *(one for name in STREAMS if not (name == "primary" and pipeline.stream) for one in _stream(name, pipeline, facts)),
        *_registry(pipeline),
        *_ids(pipeline.quality, facts),
        *_batches(pipeline),
        *(_processing(pipeline.quality, facts) if facts.processed is not None else ()),
        *(_of_the_file(one) for one in pipeline.quality.expectations),
    ]  # fmt: skip
    quality = pipeline.quality
    return [one for one in _levelled(quality, made) if not quality.disabled(*_parts(one.check))]


def _parts(check: str) -> tuple[str, str]:
    suite, _, name = check.partition(".")
    return suite, name


def _levelled(quality: Quality, made: list[Shipped]) -> Iterator[Shipped]:
    """Checks at the level that the pipeline's file gives them: then their tightest limits count, at that one."""
    levels: dict[str, set[str]] = {}
    for one in made:
        levels.setdefault(one.check, set()).add(one.level)
    for one in made:
        suite, name = _parts(one.check)
        if not quality.overridden(suite, name):
            yield one
        elif one.level == "warn" or levels[one.check] == {"fail"}:
            yield Shipped(**{**one.__dict__, "level": quality.level(suite, name, one.level)})


def _limits(
    suite: str, check: str, kind: str, args: Mapping[str, Any], bounds: Mapping[Level, Mapping[str, float | None]],
    asks: str, look: str, *, undecided: str = "", loose: Mapping[str, Any], column: str | None = None,
) -> Iterator[Shipped]:  # fmt: skip
    """An expectation for each level that has bounds; without any, one that only measures (`loose`).

    Of kinds in FLIPPED, `bounds` are of what passes, where all that is said is of what does not.
    """
    say = _of_the_rest if kind in FLIPPED else words
    held = {level: {k: v for k, v in found.items() if v is not None} for level, found in bounds.items()}
    if undecided or not any(held.values()):
        level = next((level for level in ("fail", "warn") if held.get(level)), "warn")  # type: ignore[call-overload]
        found = held.get(level, {})
        said = f"{asks}: {say(found)}" if found else asks
        yield Shipped(
            suite, check, kind, {**args, **loose}, level, said, look, undecided=undecided or _NO_LIMIT, column=column
        )
        return
    for level, found in held.items():
        if found:
            yield Shipped(suite, check, kind, {**args, **found}, level, f"{asks}: {say(found)}", look, column=column)


def words(bounds: Mapping[str, float | None]) -> str:
    """Bounds, as `min_value` and `max_value`, in words."""
    low, high = bounds.get("min_value"), bounds.get("max_value")
    if low == high and low is not None:
        return figure(low)
    sides = ((low, "at least"), (high, "at most"))
    return " and ".join(f"{said} {figure(side)}" for side, said in sides if side is not None)


def _of_the_rest(bounds: Mapping[str, float | None]) -> str:
    low = bounds.get("min_value")
    return words({"max_value": None if low is None else 1 - low})


def _most(limit: Limit | Late) -> dict[Level, dict[str, float | None]]:
    return {"fail": {"max_value": limit.fail}, "warn": {"max_value": limit.warn}}


def _not_null(suite: str, names: tuple[str, ...]) -> Iterator[Shipped]:
    for column in names:
        look = f"somebody else wrote to `{suite}`, for clickjoin never leaves {column} empty: look at its history"
        yield Shipped(
            suite, f"{suite}.not_null.{column}", "ExpectColumnValuesToNotBeNull", {"column": column}, "fail",
            f"rows whose {column} is null: 0", look, column=column,
        )  # fmt: skip


def _unique(pipeline: Pipeline, suite: str, asks: str) -> Shipped:
    named: dict[str, Any] = {"column_list": ["event_id", "event_time"]}
    kind = "ExpectCompoundColumnsToBeUnique"
    if pipeline.by_id:
        named, kind = {"column": "event_id"}, "ExpectColumnValuesToBeUnique"
    return Shipped(suite, f"{suite}.unique_ids", kind, named, "fail", f"{asks}: 0", _VERIFY, column="event_id")


def _token(suite: str) -> Shipped:
    return Shipped(
        suite, f"{suite}.token_form", "ExpectColumnValuesToMatchRegex", {"column": "token", "regex": TOKEN}, "warn",
        "tokens that name no batch: 0", f"somebody else wrote to `{suite}`: look at its history", column="token",
    )  # fmt: skip


def _joined(pipeline: Pipeline, facts: Facts) -> Iterator[Shipped]:
    quality, history = pipeline.quality, facts.history
    yield _unique(pipeline, "joined", "ids that are there twice")
    alone = pipeline.stream is not None
    yield from _not_null("joined", tuple(n for n in REQUIRED["joined"] if not (alone and n.startswith("primary_"))))
    yield _token("joined")
    for name in ("delay_p50", "delay_p90", "delay_p99"):
        yield from _delay(quality, name, history.usual("joined", name))
    for column in facts.columns:
        usual = history.usual("joined", f"null_rate.{column}")
        bounds = {
            level: {"min_value": 1 - found["max_value"]} if (found := _risen(quality, usual, level)) else {}
            for level in _LEVELS
        }
        yield from _limits(
            "joined", f"joined.null_rate.{column}", "ExpectColumnProportionOfNonNullValuesToBeBetween",
            {"column": column}, bounds, f"share of the rows without {column}{_usual(usual)}", _null_look(column),
            undecided="" if usual else _YOUNG, loose={"min_value": 0}, column=column,
        )  # fmt: skip
    yield from _kept("joined", facts)


_LEVELS: tuple[Literal["fail", "warn"], ...] = ("fail", "warn")


def _risen(quality: Quality, usual: Usual | None, level: Level) -> dict[str, float]:
    most = getattr(quality.null_rise, level)
    return {"max_value": min(usual.value + most, 1.0)} if usual and most is not None else {}


def _null_look(name: str) -> str:
    return f"who writes {name} leaves it empty more often: ask them, or see what the adapter makes of it"


def _usual(usual: Usual | None) -> str:
    return f" (usually {usual.text})" if usual else ""


def _delay(quality: Quality, name: str, usual: Usual | None) -> Iterator[Shipped]:
    """Seconds from event to output, against the usual delay; p99 against its limit too."""
    share = int(name.removeprefix("delay_p"))
    bounds: dict[Level, dict[str, float | None]] = {}
    for level in _LEVELS:
        times, most = getattr(quality.delay_growth, level), getattr(quality.delay_p99, level)
        highs = [max(usual.value * times, _SHORT)] if usual and times is not None else []
        highs += [most] if most is not None and share == 99 else []
        bounds[level] = {"max_value": min(highs)} if highs else {}
    decided = usual or (share == 99 and (quality.delay_p99.warn or quality.delay_p99.fail) is not None)
    asks = f"seconds from event to output that {share} in 100 stay below{_usual(usual)}"
    look = "was the date joined late, or filled in afterwards? Table `metrics` has the latency of each batch"
    yield from _limits(
        "joined", f"joined.{name}", "ExpectDelayToBeAtMost", {"column": "delay", "quantile": share / 100}, bounds, asks,
        look, undecided="" if decided else _YOUNG, loose={},
    )  # fmt: skip


def _stream(name: str, pipeline: Pipeline, facts: Facts) -> Iterator[Shipped]:
    quality, history, gone = pipeline.quality, facts.history, facts.gone.get(name, "")
    yield Shipped(
        name, f"{name}.landed_once", "ExpectCompoundColumnsToBeUnique",
        {"column_list": ["replica", "source_partition", "offset"]}, "fail", "records that one replica has landed twice: 0",
        f"bytes were read twice: `clickjoin verify` names them as `overread`, and `{name}`'s history who wrote them",
    )  # fmt: skip
    bounds: dict[Level, dict[str, float | None]] = {
        level: {"min_value": 1 - most} if (most := getattr(quality.repeats, level)) is not None else {}
        for level in _LEVELS
    }
    yield from _limits(
        name, f"{name}.repeat_rate", "ExpectColumnProportionOfUniqueValuesToBeBetween", {"column": "landed"}, bounds,
        "share of the records whose id was there before",
        f"who writes {name}'s logs sends records again; they are joined once all the same", loose={"min_value": 0},
        column="event_id",
    )  # fmt: skip
    yield from _not_null(name, tuple(n for n in REQUIRED[name] if not (pipeline.stream and n == "primary_id")))
    yield from _volume(quality, name, history.usual(name, "volume"), gone)
    yield from _limits(
        name, f"{name}.freshness", "ExpectColumnMinToBeBetween", {"column": "age"}, _most(quality.freshness),
        "seconds from the last event to the end of the date, or to now",
        f"did {name}'s logs stop, or are they not here yet? `clickjoin status` shows the lag of each source",
        undecided=gone, loose={"max_value": 1e12}, column="event_time",
    )  # fmt: skip
    for one in facts.fields.get(name, ()):
        usual = history.usual(name, f"null_rate.{one}")
        yield from _limits(
            name, f"{name}.null_rate.{one}", "ExpectFieldNullRateToBeAtMost", {"field": one},
            {level: _risen(quality, usual, level) for level in _LEVELS},
            f"share of the records without {one}{_usual(usual)}", _null_look(one), undecided="" if usual else _YOUNG,
            loose={}, column=one,
        )  # fmt: skip
    yield from _kept(name, facts)


def _volume(quality: Quality, suite: str, usual: Usual | None, gone: str) -> Iterator[Shipped]:
    """Distinct ids of a date against the usual number."""
    bounds: dict[Level, dict[str, float | None]] = {}
    for level in _LEVELS:
        less, more = getattr(quality.volume_drop, level), getattr(quality.volume_rise, level)
        low = usual.value * (1 - less) if usual and less is not None else None
        bounds[level] = {"min_value": low, "max_value": usual.value * (1 + more) if usual and more is not None else None}
    yield from _limits(
        suite, f"{suite}.volume", "ExpectColumnUniqueValueCountToBeBetween", {"column": "event"}, bounds,
        f"distinct ids of the date{_usual(usual)}",
        f"is all of the date's input there? Look at {suite}.source and at who writes it; then at the quarantine",
        undecided=gone or ("" if usual else _YOUNG), loose={"min_value": 0}, column="event_id",
    )  # fmt: skip


def _kept(suite: str, facts: Facts) -> Iterator[Shipped]:
    """Fields of records, or columns of the output, against those of the newest earlier date."""
    what = _KINDS[suite][1]
    names = (f"{what}_kept", f"{what}_new")
    when, known = fields.before(suite, names, facts.history)
    since, ours = f" since {when}" if when else "", {"ours": [*DERIVED[suite], *STREAMS]} if suite == "joined" else {}
    args: dict[str, Any] = {"before": known, **ours}
    kinds = (
        ("ExpectColumnsToBeKept", "ExpectNoNewColumns")
        if suite == "joined"
        else ("ExpectRecordFieldsToBeKept", "ExpectNoNewRecordFields")
    )
    look = (
        "was the adapter changed, or `joined` rewritten? Whoever reads it has to know"
        if suite == "joined"
        else f"ask who writes {suite}'s logs, and see what reads these fields: the adapter, expectations, whoever reads on"
    )
    said = (f"{what} that vanished or changed their type{since}: 0", f"{what} that appeared{since}: 0")
    for name, kind, level, asks in zip(names, kinds, _LEVELS, said, strict=True):
        yield Shipped(suite, f"{suite}.{name}", kind, args, level, asks, look, undecided="" if known else _FIRST)


def _registry(pipeline: Pipeline) -> Iterator[Shipped]:
    yield _unique(pipeline, "registry", "ids that have two claims")
    yield Shipped(
        "registry", "registry.known_outcomes", "ExpectColumnValuesToBeInSet",
        {"column": "outcome", "value_set": OUTCOMES}, "fail",
        "claims whose outcome is not joined, filtered or unjoinable: 0",
        "somebody else wrote to the registry: look at its history", column="outcome",
    )  # fmt: skip
    yield from _not_null("registry", REQUIRED["registry"])
    yield _token("registry")


_FAULTS = {
    f"foreign.{ACCOUNTED}": (
        "ExpectEveryInputAccountedFor",
        "accepted ids that are not in exactly one of joined, pending, unjoinable, expired, filtered",
    ),
    "joined.known_ids": ("ExpectEveryOutputToHaveLanded", "ids whose record never landed"),
    "registry.claims_have_outputs": ("ExpectEveryClaimToHaveItsOutput", "claims whose id is in no table"),
    "registry.outputs_have_claims": ("ExpectEveryOutputToHaveItsClaim", "ids in a table of outputs that have no claim"),
    "registry.claims_agree": (
        "ExpectClaimsAndOutputsToAgree",
        "claims that name another batch or table than their row",
    ),
}


def _ids(quality: Quality, facts: Facts) -> Iterator[Shipped]:
    for check, (kind, asks) in _FAULTS.items():
        yield Shipped("ids", check, kind, {}, "fail", f"{asks}: 0", _VERIFY, column="event_id")
    usual, gone = facts.history.usual("joined", "completeness"), facts.gone.get("foreign", "")
    bounds: dict[Level, dict[str, float | None]] = {}
    for level in _LEVELS:
        down, most = getattr(quality.completeness_drop, level), getattr(quality.completeness_lack, level)
        lows = [usual.value - down] if usual and down is not None else []
        lows += [1 - most] if most is not None else []
        bounds[level] = {"min_value": max(0.0, *lows)} if lows else {}
    limited = (quality.completeness_lack.warn or quality.completeness_lack.fail) is not None
    yield from _limits(
        "ids", "joined.completeness", "ExpectColumnMeanToBeBetween", {"column": "is_joined"}, bounds,
        f"share of the accepted ids that are joined{_usual(usual)}",
        "did primary events come late or not at all? `clickjoin status` shows what waits; primary.volume how many came",
        undecided=gone or ("" if usual or limited else _YOUNG), loose={"min_value": 0},
    )  # fmt: skip


def _batches(pipeline: Pipeline) -> Iterator[Shipped]:
    quality = pipeline.quality
    yield from _limits(
        "batches", "foreign.quarantine_rate", "ExpectShareToBeAtMost", {"part": "quarantined", "whole": "records"},
        _most(quality.quarantine), "share of the records that the date's batches quarantined, of both streams",
        "`clickjoin quarantine export` writes them out with the reason of each", loose={},
    )  # fmt: skip
    for column in pipeline.output.columns:
        yield from _limits(
            "batches", f"joined.misfit_rate.{column}", "ExpectShareToBeAtMost",
            {"part": f"misfits_{column}", "whole": "published"}, _most(quality.misfits),
            f"share of the values of {column} that did not fit its type, of the date's batches",
            f"the records hold other values than output.columns.{column} says: ask who writes them, or change the column",
            loose={}, column=column,
        )  # fmt: skip


def _processing(quality: Quality, facts: Facts) -> Iterator[Shipped]:
    unknown = facts.processed or ""
    yield Shipped(
        "signals", "signals.unique_ids", "ExpectColumnValuesToBeUnique", {"column": "id"}, "fail",
        "ids of signals that are there twice: 0",
        "somebody else wrote to `signals`: `clickjoin process --rebuild` begins again from the whole output",
        undecided=unknown, column="id",
    )  # fmt: skip
    yield Shipped(
        "sums", "signals.every_event_counted", "ExpectTableRowCountToEqual", {"value": 0}, "fail",
        "faults of the sums of processing: 0", facts.sums or "`clickjoin process` compares them", undecided=unknown,
    )  # fmt: skip
    empty = "" if facts.joined else "the output has no rows of the date"
    most: dict[Level, dict[str, float | None]] = {
        level: {"max_value": int(share * facts.joined)} if (share := getattr(quality.late, level)) is not None else {}
        for level in _LEVELS
    }
    yield from _limits(
        "late", "signals.late_rate", "ExpectTableRowCountToBeBetween", {}, most,
        f"events that came behind the watermark of processing, of {facts.joined:,} of the date",
        "table `process/late` names them: raise close.max_out_of_orderness, or write `late: correct`",
        undecided=unknown or empty, loose={"min_value": 0},
    )  # fmt: skip


def _of_the_file(one: Expectation) -> Shipped:
    """An expectation of the pipeline's own file."""
    kind = "".join(part.capitalize() for part in one.expectation.split("_"))
    named = {key: _column(one.table, one.args[key]) for key in ("column_A", "column_B") if key in one.args}
    if isinstance(listed := one.args.get("column_list"), list):
        named["column_list"] = [_column(one.table, name) for name in listed]
    column = {"column": _column(one.table, one.column)} if one.column else {}
    said = ", ".join(f"{name}: {value}" for name, value in one.args.items()) or one.expectation.replace("_", " ")
    return Shipped(
        one.table, f"{one.table}.{one.check}", kind, {**one.args, **named, **column}, one.level, said, OWN,
        column=one.column,
    )  # fmt: skip


def _column(table: str, name: Any) -> Any:
    """A column's name in the rows that are checked: `payload.item` is `item`, `foreign_record.item` `foreign.item`."""
    if not isinstance(name, str):
        return name
    if table == "joined":
        return re.sub(r"^(foreign|primary)_record\.", r"\1.", name)
    return name.removeprefix("payload.") if table in STREAMS else name
