"""The suites that clickjoin ships: every expectation of a date, by the asset whose rows it is asked of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clickjoin.quality import fields
from clickjoin.quality.checks import ACCOUNTED
from clickjoin.quality.frames import DERIVED, STREAMS
from clickjoin.quality.shipped import LEVELS, Shipped, at_most, levelled, limits, of_the_file, usually

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.config.quality import Level, Quality
    from clickjoin.quality.history import History, Usual

REQUIRED = {
    "joined": ("event_id", "primary_id", "primary_time", "token"),
    "primary": ("event_id", "payload"),
    "foreign": ("event_id", "primary_id", "payload"),
    "registry": ("event_id", "token", "outcome"),
}
OUTCOMES = ["joined", "filtered", "unjoinable", "forgotten"]
TOKEN = r"^[^/]+/[^/]+/[^/]+/[0-9]+$"  # pipeline/replica/sequence/number
_SHORT = 10.0  # seconds: below this a delay is good, however much it has grown
_YOUNG = "too few earlier dates to say what is usual"
_FIRST = "no earlier date has any: this one is what the next is checked against"
_VERIFY = "run `clickjoin verify` for this date: it names each id, and --repair fixes what can be fixed"


@dataclass(frozen=True)
class Facts:
    """What a date's limits hang on beside the file.

    `fields`: names of the fields of each stream's records; `columns`: the adapter's, of the output; `gone`: by stream,
    why its rows say nothing; `joined`: rows of the output; `processed`: why processing says nothing, None without any;
    `sums`: faults of its sums; `replicas`: how many have landed rows.
    """

    history: History
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    gone: Mapping[str, str] = field(default_factory=dict)
    joined: int = 0
    processed: str | None = None
    sums: str = ""
    replicas: int = 2


def shipped(pipeline: Pipeline, facts: Facts) -> list[Shipped]:
    """Every expectation of a date that is not disabled, at its level."""
    made = [
        *_joined(pipeline, facts),
        *(() if pipeline.stream else _stream("primary", pipeline, facts)),
        *_stream("foreign", pipeline, facts),
        *_registry(),
        *_ids(pipeline, facts),
        *_batches(pipeline),
        *(_processing(pipeline.quality, facts) if facts.processed is not None else ()),
        *(of_the_file(one) for one in pipeline.quality.expectations),
    ]  # fmt: skip
    return list(levelled(pipeline.quality, made))


def _not_null(suite: str, names: tuple[str, ...]) -> Iterator[Shipped]:
    for column in names:
        look = f"somebody else wrote to `{suite}`, for clickjoin never leaves {column} empty: look at its history"
        yield Shipped(
            suite, f"{suite}.not_null.{column}", "ExpectColumnValuesToNotBeNull", {"column": column}, "fail",
            f"rows whose {column} is null: 0", look, column=column,
        )  # fmt: skip


def _unique(pipeline: Pipeline) -> Shipped:
    named: dict[str, Any] = {"column_list": ["event_id", "event_time"]}
    kind = "ExpectCompoundColumnsToBeUnique"
    if pipeline.by_id:
        named, kind = {"column": "event_id"}, "ExpectColumnValuesToBeUnique"
    asks = "ids that are there twice: 0"
    return Shipped("joined", "joined.unique_ids", kind, named, "fail", asks, _VERIFY, column="event_id")


def _joined(pipeline: Pipeline, facts: Facts) -> Iterator[Shipped]:
    quality, history = pipeline.quality, facts.history
    yield _unique(pipeline)
    alone = pipeline.stream is not None
    yield from _not_null("joined", tuple(n for n in REQUIRED["joined"] if not (alone and n.startswith("primary_"))))
    for name in ("delay_p50", "delay_p90", "delay_p99"):
        yield from _delay(quality, name, history.usual("joined", name))
    for column in facts.columns:
        usual = history.usual("joined", f"null_rate.{column}")
        bounds = {
            level: {"min_value": 1 - found["max_value"]} if (found := _risen(quality, usual, level)) else {}
            for level in LEVELS
        }
        yield from limits(
            "joined", f"joined.null_rate.{column}", "ExpectColumnProportionOfNonNullValuesToBeBetween",
            {"column": column}, bounds, f"share of the rows without {column}{usually(usual)}", _null_look(column),
            undecided="" if usual else _YOUNG, loose={"min_value": 0}, column=column,
        )  # fmt: skip
    yield from _kept("joined", facts)


def _risen(quality: Quality, usual: Usual | None, level: Level) -> dict[str, float]:
    most = getattr(quality.null_rise, level)
    return {"max_value": min(usual.value + most, 1.0)} if usual and most is not None else {}


def _null_look(name: str) -> str:
    return f"who writes {name} leaves it empty more often: ask them, or see what the adapter makes of it"


def _delay(quality: Quality, name: str, usual: Usual | None) -> Iterator[Shipped]:
    """Seconds from event to output, against the usual delay; p99 against its limit too."""
    share = int(name.removeprefix("delay_p"))
    bounds: dict[Level, dict[str, float | None]] = {}
    for level in LEVELS:
        times, most = getattr(quality.delay_growth, level), getattr(quality.delay_p99, level)
        highs = [max(usual.value * times, _SHORT)] if usual and times is not None else []
        highs += [most] if most is not None and share == 99 else []
        bounds[level] = {"max_value": min(highs)} if highs else {}
    decided = usual or (share == 99 and (quality.delay_p99.warn or quality.delay_p99.fail) is not None)
    asks = f"seconds from event to output that {share} in 100 stay below{usually(usual)}"
    look = "was the date joined late, or filled in afterwards? Table `metrics` has the latency of each batch"
    yield from limits(
        "joined", f"joined.{name}", "ExpectDelayToBeAtMost", {"column": "delay", "quantile": share / 100}, bounds, asks,
        look, undecided="" if decided else _YOUNG, loose={},
    )  # fmt: skip


def _stream(name: str, pipeline: Pipeline, facts: Facts) -> Iterator[Shipped]:
    quality, history, gone = pipeline.quality, facts.history, facts.gone.get(name, "")
    yield Shipped(
        name, f"{name}.landed_once", "ExpectCompoundColumnsToBeUnique",
        {"column_list": ["replica", "source_partition", "offset"]}, "fail",
        "records that one replica has landed twice: 0",
        f"bytes were read twice: `clickjoin verify` names them as `overread`, and `{name}`'s history who wrote them",
    )  # fmt: skip
    bounds: dict[Level, dict[str, float | None]] = {
        level: {"min_value": 1 - most} if (most := getattr(quality.repeats, level)) is not None else {}
        for level in LEVELS
    }
    yield from limits(
        name, f"{name}.repeat_rate", "ExpectColumnProportionOfUniqueValuesToBeBetween",
        {"column": "landed" if facts.replicas > 1 else "event"}, bounds,
        "share of the records whose id was there before",
        f"who writes {name}'s logs sends records again; they are joined once all the same", loose={"min_value": 0},
        column="event_id",
    )  # fmt: skip
    yield from _not_null(name, tuple(n for n in REQUIRED[name] if not (pipeline.stream and n == "primary_id")))
    yield from _volume(quality, name, history.usual(name, "volume"), gone)
    yield from limits(
        name, f"{name}.freshness", "ExpectColumnMinToBeBetween", {"column": "age"}, at_most(quality.freshness),
        "seconds from the last event to the end of the date, or to now",
        f"did {name}'s logs stop, or are they not here yet? `clickjoin status` shows the lag of each source",
        undecided=gone, loose={"max_value": 1e12}, column="event_time",
    )  # fmt: skip
    for one in facts.fields.get(name, ()):
        usual = history.usual(name, f"null_rate.{one}")
        yield from limits(
            name, f"{name}.null_rate.{one}", "ExpectFieldNullRateToBeAtMost", {"field": one},
            {level: _risen(quality, usual, level) for level in LEVELS},
            f"share of the records without {one}{usually(usual)}", _null_look(one), undecided="" if usual else _YOUNG,
            loose={}, column=one,
        )  # fmt: skip
    yield from _kept(name, facts)


def _volume(quality: Quality, suite: str, usual: Usual | None, gone: str) -> Iterator[Shipped]:
    """Distinct ids of a date against the usual number."""
    bounds: dict[Level, dict[str, float | None]] = {}
    for level in LEVELS:
        less, more = getattr(quality.volume_drop, level), getattr(quality.volume_rise, level)
        low = usual.value * (1 - less) if usual and less is not None else None
        bounds[level] = {
            "min_value": low,
            "max_value": usual.value * (1 + more) if usual and more is not None else None,
        }
    yield from limits(
        suite, f"{suite}.volume", "ExpectColumnUniqueValueCountToBeBetween", {"column": "event"}, bounds,
        f"distinct ids of the date{usually(usual)}",
        f"is all of the date's input there? Look at {suite}.source and at who writes it; then at the quarantine",
        undecided=gone or ("" if usual else _YOUNG), loose={"min_value": 0}, column="event_id",
    )  # fmt: skip


def _kept(suite: str, facts: Facts) -> Iterator[Shipped]:
    """Fields of records, or columns of the output, against those of the newest earlier date."""
    what = "columns" if suite == "joined" else "fields"
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
        else f"ask who writes {suite}'s logs, and see what reads these fields: adapter, expectations, whoever reads on"
    )
    said = (f"{what} that vanished or changed their type{since}: 0", f"{what} that appeared{since}: 0")
    for name, kind, level, asks in zip(names, kinds, LEVELS, said, strict=True):
        yield Shipped(suite, f"{suite}.{name}", kind, args, level, asks, look, undecided="" if known else _FIRST)


def _registry() -> Iterator[Shipped]:
    yield Shipped(
        "registry", "registry.known_outcomes", "ExpectColumnValuesToBeInSet",
        {"column": "outcome", "value_set": OUTCOMES}, "fail",
        "claims whose outcome is not joined, filtered or unjoinable: 0",
        "somebody else wrote to the registry: look at its history", column="outcome",
    )  # fmt: skip
    yield from _not_null("registry", REQUIRED["registry"])
    yield Shipped(
        "registry", "registry.token_form", "ExpectColumnValuesToMatchRegex",
        {"column": "token", "regex": TOKEN}, "warn",
        "tokens that name no batch: 0", "somebody else wrote to the registry: look at its history", column="token",
    )  # fmt: skip


_FAULTS = {
    f"foreign.{ACCOUNTED}": (
        "ExpectEveryInputAccountedFor",
        "accepted ids that are not in exactly one of joined, pending, unjoinable, expired, filtered",
    ),
    "joined.known_ids": ("ExpectEveryOutputToHaveLanded", "ids whose record never landed"),
    "registry.unique_ids": ("ExpectEveryIdToBeClaimedOnce", "ids that have two claims"),
    "registry.claims_have_outputs": ("ExpectEveryClaimToHaveItsOutput", "claims whose id is in no table"),
    "registry.outputs_have_claims": ("ExpectEveryOutputToHaveItsClaim", "ids in a table of outputs that have no claim"),
    "registry.claims_agree": (
        "ExpectClaimsAndOutputsToAgree",
        "claims that name another batch or table than their row",
    ),
}


def _ids(pipeline: Pipeline, facts: Facts) -> Iterator[Shipped]:
    quality = pipeline.quality
    if not pipeline.by_id:
        yield Shipped(
            "ids", "joined.ids_stamped_once", "ExpectColumnValuesToBeUnique", {"column": "joined_id"}, "warn",
            "ids that are joined at two times of the date: 0",
            "their sender stamps an event again: with `registry.identity: id` an id is joined once, whatever its time",
            column="event_id",
        )  # fmt: skip
    for check, (kind, asks) in _FAULTS.items():
        yield Shipped("ids", check, kind, {}, "fail", f"{asks}: 0", _VERIFY, column="event_id")
    usual, gone = facts.history.usual("joined", "completeness"), facts.gone.get("foreign", "")
    bounds: dict[Level, dict[str, float | None]] = {}
    for level in LEVELS:
        down, most = getattr(quality.completeness_drop, level), getattr(quality.completeness_lack, level)
        lows = [usual.value - down] if usual and down is not None else []
        lows += [1 - most] if most is not None else []
        bounds[level] = {"min_value": max(0.0, *lows)} if lows else {}
    limited = (quality.completeness_lack.warn or quality.completeness_lack.fail) is not None
    yield from limits(
        "ids", "joined.completeness", "ExpectColumnMeanToBeBetween", {"column": "is_joined"}, bounds,
        f"share of the accepted ids that are joined{usually(usual)}",
        "did primary events come late or not at all? `clickjoin status` shows what waits; primary.volume how many came",
        undecided=gone or ("" if usual or limited else _YOUNG), loose={"min_value": 0},
    )  # fmt: skip


def _batches(pipeline: Pipeline) -> Iterator[Shipped]:
    quality = pipeline.quality
    yield from limits(
        "batches", "foreign.quarantine_rate", "ExpectShareToBeAtMost", {"part": "quarantined", "whole": "records"},
        at_most(quality.quarantine), "share of the records that the date's batches quarantined, of both streams",
        "`clickjoin quarantine export` writes them out with the reason of each", loose={},
    )  # fmt: skip
    for column in pipeline.output.columns:
        yield from limits(
            "batches", f"joined.misfit_rate.{column}", "ExpectShareToBeAtMost",
            {"part": f"misfits_{column}", "whole": "published"}, at_most(quality.misfits),
            f"share of the values of {column} that did not fit its type, of the date's batches",
            f"records hold other values than output.columns.{column} says: ask who writes them, or change the column",
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
        for level in LEVELS
    }
    yield from limits(
        "late", "signals.late_rate", "ExpectTableRowCountToBeBetween", {}, most,
        f"events that came behind the watermark of processing, of {facts.joined:,} of the date",
        "table `process/late` names them: raise close.max_out_of_orderness, or write `late: correct`",
        undecided=unknown or empty, loose={"min_value": 0},
    )  # fmt: skip
