"""The suites that clickjoin ships: every expectation of a date, by the asset whose rows it is asked of."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clickjoin.model.reporter import figure
from clickjoin.quality.frames import DERIVED, STREAMS
from clickjoin.quality.shipped import LEVELS, Shipped, at, levelled, limits, of_the_file, tightest, usually

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.config.quality import Quality
    from clickjoin.quality.history import History

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
        *_registry(pipeline),
        *_ids(pipeline, facts),
        *_batches(pipeline),
        *(_processing(pipeline.quality, facts) if facts.processed is not None else ()),
        *(of_the_file(one) for one in pipeline.quality.expectations),
    ]  # fmt: skip
    return list(levelled(pipeline.quality, made))


def _not_null(suite: str, pipeline: Pipeline) -> Iterator[Shipped]:
    for column in REQUIRED[suite]:
        if pipeline.stream and column.startswith("primary_"):
            continue
        look = f"someone else wrote to `{suite}`, for clickjoin never leaves {column} empty: look at its history"
        yield Shipped(
            suite, f"{suite}.not_null.{column}", "ExpectColumnValuesToNotBeNull", {"column": column}, "fail",
            f"rows whose {column} is null: 0", look, column=column,
        )  # fmt: skip


def _joined(pipeline: Pipeline, facts: Facts) -> Iterator[Shipped]:
    asked: tuple[str, Any] = ("ExpectCompoundColumnsToBeUnique", {"column_list": ["event_id", "event_time"]})
    if pipeline.by_id:
        asked = ("ExpectColumnValuesToBeUnique", {"column": "event_id"})
    said = "ids that are there twice: 0"
    yield Shipped("joined", "joined.unique_ids", *asked, "fail", said, _VERIFY, column="event_id")
    yield from _not_null("joined", pipeline)
    for share in (50, 90, 99):
        yield from _delay(share, pipeline.quality, facts.history)
    for column in facts.columns:
        yield from _null_rate("joined", column, pipeline.quality, facts.history)
    yield from _row_count("joined", pipeline.quality, facts.history)
    yield from _kept("joined", facts)


def _null_rate(suite: str, name: str, quality: Quality, history: History) -> Iterator[Shipped]:
    """Of a column of the output, or of a field of records."""
    kind, args, what = "ExpectFieldNullRateToBeAtMost", {"field": name}, "records"
    if suite == "joined":
        kind, args, what = "ExpectColumnProportionOfNonNullValuesToBeBetween", {"column": name}, "rows"
    usual = history.usual(suite, f"null_rate.{name}")
    bounds = at("max_value", quality.null_rise, lambda rise: min(usual.value + rise, 1.0)) if usual else {}
    yield from limits(
        suite, f"{suite}.null_rate.{name}", kind, args, bounds,
        f"share of the {what} without {name}{usually(usual)}",
        f"who writes {name} leaves it empty more often: ask them, or see what the adapter makes of it",
        undecided="" if usual else _YOUNG, column=name,
    )  # fmt: skip


def _delay(share: int, quality: Quality, history: History) -> Iterator[Shipped]:
    """Seconds from event to output, against the usual delay; p99 against its limit too."""
    usual = history.usual("joined", f"delay_p{share}")
    grown = at("max_value", quality.delay_growth, lambda times: max(usual.value * times, _SHORT)) if usual else {}
    yield from limits(
        "joined", f"joined.delay_p{share}", "ExpectDelayToBeAtMost", {"column": "delay", "quantile": share / 100},
        tightest(grown, at("max_value", quality.delay_p99) if share == 99 else {}),
        f"seconds from event to output that {share} in 100 stay below{usually(usual)}",
        "was the date joined late, or filled in afterwards? Table `metrics` has the latency of each batch",
        unbounded="" if usual else _YOUNG,
    )  # fmt: skip


def _stream(name: str, pipeline: Pipeline, facts: Facts) -> Iterator[Shipped]:
    quality, gone = pipeline.quality, facts.gone.get(name, "")
    yield Shipped(
        name, f"{name}.landed_once", "ExpectCompoundColumnsToBeUnique",
        {"column_list": ["replica", "source_partition", "offset"]}, "fail",
        "records that one replica has landed twice: 0",
        f"bytes were read twice: `clickjoin verify` names them as `overread`, and `{name}`'s history who wrote them",
    )  # fmt: skip
    yield from limits(
        name, f"{name}.repeat_rate", "ExpectColumnProportionOfUniqueValuesToBeBetween",
        {"column": "landed" if facts.replicas > 1 else "event"}, at("max_value", quality.repeats),
        "share of the records whose id was there before",
        f"who writes {name}'s logs sends records again; they are joined once anyway", column="event_id",
    )  # fmt: skip
    yield from _not_null(name, pipeline)
    yield from _row_count(name, quality, facts.history, gone)
    yield from _volume(name, quality, facts.history, gone)
    yield from limits(
        name, f"{name}.freshness", "ExpectColumnMinToBeBetween", {"column": "age"}, at("max_value", quality.freshness),
        "seconds from the last event to the end of the date, or to now",
        f"did {name}'s logs stop, or are they not here yet? `clickjoin status` shows the lag of each source",
        undecided=gone, column="event_time",
    )  # fmt: skip
    for one in facts.fields.get(name, ()):
        yield from _null_rate(name, one, quality, facts.history)
    yield from _kept(name, facts)


def _volume(suite: str, quality: Quality, history: History, gone: str) -> Iterator[Shipped]:
    """Distinct ids of a date against the usual number."""
    usual = history.usual(suite, "volume")
    fewest = at("min_value", quality.volume_drop, lambda less: usual.value * (1 - less)) if usual else {}
    most = at("max_value", quality.volume_rise, lambda more: usual.value * (1 + more)) if usual else {}
    yield from limits(
        suite, f"{suite}.volume", "ExpectColumnUniqueValueCountToBeBetween", {"column": "event"},
        tightest(fewest, most), f"distinct ids of the date{usually(usual)}",
        f"is all of the date's input there? Look at {suite}.source and at who writes it; then at the quarantine",
        undecided=gone or ("" if usual else _YOUNG), column="event_id",
    )  # fmt: skip


def _row_count(suite: str, quality: Quality, history: History, gone: str = "") -> Iterator[Shipped]:
    """Rows of a date against those of the day before: from a pipeline's second date on."""
    before, share = history.day_before(suite, "row_count"), quality.day_before
    fewest = at("min_value", share, lambda less: int((before or 0) * (1 - less)))
    most = at("max_value", share, lambda less: math.ceil((before or 0) / max(1 - less, 1e-9)))
    yield from limits(
        suite, f"{suite}.row_count", "ExpectTableRowCountToBeBetween", {}, tightest(fewest, most) if before else {},
        "rows of the date" + (f" (the day before had {figure(before)})" if before else ""),
        f"is all of the date's input there, and once? Look at {suite}.volume, and at both dates in table `metrics`",
        undecided=gone or ("" if before else "nothing is known of the day before"),
    )  # fmt: skip


def _kept(suite: str, facts: Facts) -> Iterator[Shipped]:
    """Fields of records, or columns of the output, against those of the newest earlier date."""
    what, ours = "fields", {}
    kinds = ("ExpectRecordFieldsToBeKept", "ExpectNoNewRecordFields")
    look = f"ask who writes {suite}'s logs, and see what reads these fields: adapter, expectations, anyone who reads on"
    if suite == "joined":
        what, ours = "columns", {"ours": [*DERIVED[suite], *STREAMS]}
        kinds = ("ExpectColumnsToBeKept", "ExpectNoNewColumns")
        look = "was the adapter changed, or `joined` rewritten? Anyone who reads it has to know"
    names = (f"{what}_kept", f"{what}_new")
    when, known = facts.history.schema(suite, *names)
    since = f" since {when}" if when else ""
    said = (f"{what} that vanished or changed their type{since}: 0", f"{what} that appeared{since}: 0")
    for name, kind, level, asks in zip(names, kinds, LEVELS, said, strict=True):
        args = {"before": known, **ours}
        yield Shipped(suite, f"{suite}.{name}", kind, args, level, asks, look, undecided="" if known else _FIRST)


def _registry(pipeline: Pipeline) -> Iterator[Shipped]:
    look = "someone else wrote to the registry: look at its history"
    yield Shipped(
        "registry", "registry.known_outcomes", "ExpectColumnValuesToBeInSet",
        {"column": "outcome", "value_set": OUTCOMES}, "fail",
        "claims whose outcome is not joined, filtered or unjoinable: 0", look, column="outcome",
    )  # fmt: skip
    yield from _not_null("registry", pipeline)
    yield Shipped(
        "registry", "registry.token_form", "ExpectColumnValuesToMatchRegex", {"column": "token", "regex": TOKEN},
        "warn", "tokens that name no batch: 0", look, column="token",
    )  # fmt: skip


_FAULTS = {
    "foreign.every_input_accounted_for": (
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
    least = at("min_value", quality.completeness_lack, lambda lack: 1 - lack)
    if usual:
        least = tightest(least, at("min_value", quality.completeness_drop, lambda drop: max(usual.value - drop, 0.0)))
    yield from limits(
        "ids", "joined.completeness", "ExpectColumnMeanToBeBetween", {"column": "is_joined"}, least,
        f"share of the accepted ids that are joined{usually(usual)}",
        "did primary events come late or not at all? `clickjoin status` shows what waits; primary.volume how many came",
        undecided=gone, unbounded="" if usual else _YOUNG,
    )  # fmt: skip


def _batches(pipeline: Pipeline) -> Iterator[Shipped]:
    quality = pipeline.quality
    yield from limits(
        "batches", "foreign.quarantine_rate", "ExpectShareToBeAtMost", {"part": "quarantined", "whole": "records"},
        at("max_value", quality.quarantine),
        "share of the records that the date's batches quarantined, of both streams",
        "`clickjoin quarantine export` writes them out with the reason of each",
    )  # fmt: skip
    for column in pipeline.output.columns:
        yield from limits(
            "batches", f"joined.misfit_rate.{column}", "ExpectShareToBeAtMost",
            {"part": f"misfits_{column}", "whole": "published"}, at("max_value", quality.misfits),
            f"share of the values of {column} that did not fit its type, of the date's batches",
            f"records hold other values than output.columns.{column} says: ask who writes them, or change the column",
            column=column,
        )  # fmt: skip


def _processing(quality: Quality, facts: Facts) -> Iterator[Shipped]:
    unknown = facts.processed or ""
    yield Shipped(
        "signals", "signals.unique_ids", "ExpectColumnValuesToBeUnique", {"column": "id"}, "fail",
        "ids of signals that are there twice: 0",
        "someone else wrote to `signals`: `clickjoin process --rebuild` begins again from the whole output",
        undecided=unknown, column="id",
    )  # fmt: skip
    yield Shipped(
        "sums", "signals.every_event_counted", "ExpectTableRowCountToEqual", {"value": 0}, "fail",
        "faults of the sums of processing: 0", facts.sums or "`clickjoin process` compares them", undecided=unknown,
    )  # fmt: skip
    empty = "" if facts.joined else "the output has no rows of the date"
    most = at("max_value", quality.late, lambda share: int(share * facts.joined))
    yield from limits(
        "late", "signals.late_rate", "ExpectTableRowCountToBeBetween", {}, most,
        f"events that came behind the watermark of processing, of {facts.joined:,} of the date",
        "table `process/late` names them: raise close.max_out_of_orderness, or write `late: correct`",
        undecided=unknown or empty,
    )  # fmt: skip
