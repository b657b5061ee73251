"""The suites: every check of our own on `joined`, `primary`, `foreign` and `registry`, made from a date's figures.

A check asks that there is nothing of a kind, that a figure keeps to a limit of the pipeline's file, or that it is about
as usual. Values that do not pass are read only where a check is red.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from clickjoin.model.ids import moment
from clickjoin.quality.checks import ACCOUNTED, ZERO, Bounds, Check
from clickjoin.quality.fields import of_columns, of_fields
from clickjoin.quality.measure import REQUIRED, STRANGE
from clickjoin.verification import id_places

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.config.quality import Late, Level, Limit, Quality
    from clickjoin.quality.history import History, Usual
    from clickjoin.quality.measure import Figures, Processed
    from clickjoin.verification.snapshot import Reading

_SHORT = 10.0  # seconds: below this a delay is good, however much it has grown
_EMPTY = "there are no rows of the date"
_YOUNG = "too few earlier dates to say what is usual"
_VERIFY = "run `clickjoin verify` for this date: it names each id, and --repair fixes what can be fixed"
_GONE = "rows of the date may have been collected (retention.{})"
# Checks that there is no fault of a kind, as verification finds them: what they ask for.
_FAULTS = {
    "joined": {
        "unique_ids": ("ids that are there twice", "doubled"),
        "known_ids": ("ids whose record never landed", "unknown_output"),
    },
    "registry": {
        "unique_ids": ("ids that have two claims", "doubled_claim"),
        "claims_have_outputs": ("claims whose id is in no table", "claim_without_output"),
        "outputs_have_claims": ("ids in a table of outputs that have no claim", "output_without_claim"),
        "claims_agree": ("claims that name another batch or table than their row", "wrong_token"),
    },
}
_NOWHERE = ("lost", "claim_without_output", "two_places")  # kinds of fault of an input that is not accounted for
_MAX_SAMPLES = 5
_EVENT = ("event_id", "unix_micros(event_time) AS micros")


def checks(quality: Quality, figures: Figures, history: History) -> list[Check]:
    """Every check of a date that is not disabled, at its level."""
    made = [
        *_joined(quality, figures, history),
        *(() if figures.alone else _stream("primary", quality, figures, history)),
        *_stream("foreign", quality, figures, history),
        *_foreign(quality, figures),
        *_registry(figures),
        *(_signals(quality, figures, figures.processed) if figures.processed else ()),
    ]
    return [one.levelled(quality) for one in made if not quality.disabled(one.suite, one.name)]


def _none(suite: str, name: str, asks: str, count: float, look: str, column: str | None = None) -> Check:
    """A check that there is nothing of a kind."""
    return Check(suite, name, asks, count, fail=ZERO, column=column, look=look, counts=True)


def _limited(
    suite: str, name: str, asks: str, figure: float | None, limit: Limit | Late, look: str, *,
    column: str | None = None, empty: str = _EMPTY, gone: str = "",
) -> Check:  # fmt: skip
    """A check that a figure is not above a limit. `empty`: why there may be none; `gone`: why it says nothing."""
    why = gone or (empty if figure is None else "" if _is_set(limit) else "it has no limit")
    fail, warn = (None if most is None else Bounds(high=most) for most in (limit.fail, limit.warn))
    return Check(suite, name, asks, figure, fail, warn, column, look, undecided=why)


def _compared(
    suite: str, name: str, asks: str, figure: float | None, usual: Usual | None,
    bounds: Callable[[Level], Bounds | None], look: str, *,
    column: str | None = None, counts: bool = False, limited: bool = False, gone: str = "",
) -> Check:  # fmt: skip
    """A check that a figure is about as usual. `limited`: it has a limit too; `gone`: why it says nothing."""
    why = gone or (_EMPTY if figure is None else "" if limited or usual else _YOUNG)
    asks += f" (usually {usual.text})" if usual else ""
    return Check(suite, name, asks, figure, bounds("fail"), bounds("warn"), column, look, counts=counts, undecided=why)


def _is_set(limit: Limit | Late) -> bool:
    return limit.warn is not None or limit.fail is not None


def _without_faults(suite: str, figures: Figures) -> Iterator[Check]:
    for name, (asks, kind) in _FAULTS[suite].items():
        yield _none(suite, name, asks, figures.accounts[f"fault:{kind}"], _VERIFY, "event_id")


def _not_null(suite: str, figures: Figures) -> Iterator[Check]:
    for column in (name for name in REQUIRED[suite] if f"null:{name}" in figures.tables[suite]):
        found = figures.tables[suite][f"null:{column}"]
        asks = f"rows whose {column} is null"
        look = f"somebody else wrote to `{suite}`, for clickjoin never leaves {column} empty: look at its history"
        yield _none(suite, f"not_null.{column}", asks, found, look, column)


def _joined(quality: Quality, figures: Figures, history: History) -> Iterator[Check]:
    seen, accounts, rows = figures.tables["joined"], figures.accounts, figures.tables["joined"]["rows"]
    yield from _without_faults("joined", figures)
    yield from _not_null("joined", figures)
    share = accounts["joined"] / accounts["accepted"] if accounts["accepted"] else None
    yield completeness(quality, share, history.usual("joined", "completeness"), _gone("foreign", figures))
    for name in ("delay_p50", "delay_p90", "delay_p99"):
        yield delay(quality, name, seen[name], history.usual("joined", name))
    for column in (key.removeprefix("null:") for key in seen if key.startswith("null:")):
        if column not in REQUIRED["joined"]:
            yield _nulls(quality, "joined", column, seen[f"null:{column}"] / rows if rows else None, history)
    for column in figures.typed:
        found = (figures.misfits[0].get(column, 0), figures.misfits[1]) if figures.misfits else None
        yield misfits(quality, column, found)
    yield from of_columns(figures, history)


def _gone(stream: str, figures: Figures) -> str:
    return _GONE.format(stream) if stream in figures.collected else ""


def completeness(quality: Quality, share: float | None, usual: Usual | None, gone: str) -> Check:
    """Share of the accepted ids that are joined, against the usual share and against the limit."""
    fall, lack = quality.completeness_drop, quality.completeness_lack

    def bounds(level: Level) -> Bounds | None:
        down, most = getattr(fall, level), getattr(lack, level)
        lows = [usual.value - down] if usual and down is not None else []
        lows += [1 - most] if most is not None else []
        return Bounds(max(0.0, *lows)) if lows else None

    asks = "share of the accepted ids that are joined"
    look = (
        "did primary events come late or not at all? `clickjoin status` shows what waits; primary.volume how many came"
    )
    return _compared("joined", "completeness", asks, share, usual, bounds, look, limited=_is_set(lack), gone=gone)


def delay(quality: Quality, name: str, seconds: float | None, usual: Usual | None) -> Check:
    """Seconds from event to output, against the usual delay; p99 against its limit too."""
    growth, limit = quality.delay_growth, quality.delay_p99

    def bounds(level: Level) -> Bounds | None:
        times, most = getattr(growth, level), getattr(limit, level)
        highs = [max(usual.value * times, _SHORT)] if usual and times is not None else []
        highs += [most] if most is not None and name == "delay_p99" else []
        return Bounds(high=min(highs)) if highs else None

    asks = f"seconds from event to output that {name.removeprefix('delay_p')} in 100 stay below"
    look = "was the date joined late, or filled in afterwards? Table `metrics` has the latency of each batch"
    limited = name == "delay_p99" and _is_set(limit)
    return _compared("joined", name, asks, seconds, usual, bounds, look, limited=limited)


def _nulls(quality: Quality, suite: str, column: str, share: float | None, history: History) -> Check:
    """Share of the rows in which a column or field has no value, against the usual share."""
    name = f"null_rate.{column}"
    usual = history.usual(suite, name)

    def bounds(level: Level) -> Bounds | None:
        most = getattr(quality.null_rise, level)
        return Bounds(high=min(usual.value + most, 1.0)) if usual and most is not None else None

    look = f"who writes {column} leaves it empty more often: ask them, or see what the adapter makes of it"
    return _compared(suite, name, f"share of the rows without {column}", share, usual, bounds, look, column=column)


def misfits(quality: Quality, column: str, found: tuple[int, int] | None) -> Check:
    """Share of a typed column's values that did not fit its type, of all rows that the date's batches published."""
    bad, all_ = found or (0, 0)
    asks = f"share of the values of {column} that did not fit its type, of the date's batches"
    look = f"the records hold other values than output.columns.{column} says: ask who writes them, or change the column"
    empty = "no metrics of the batches that published the date"
    share = bad / all_ if all_ else None
    return _limited("joined", f"misfit_rate.{column}", asks, share, quality.misfits, look, column=column, empty=empty)


def _stream(name: str, quality: Quality, figures: Figures, history: History) -> Iterator[Check]:
    found, rows, gone = figures.streams[name], figures.tables[name]["rows"], _gone(name, figures)
    look = f"bytes were read twice: `clickjoin verify` names them as `overread`, and `{name}`'s history who wrote them"
    yield _none(name, "landed_once", "records that one replica has landed twice", found["twice"], look)
    asks, share = "share of the records whose id was there before", found["repeats"] / rows if rows else None
    look = f"who writes {name}'s logs sends records again; they are joined once all the same"
    yield _limited(name, "repeat_rate", asks, share, quality.repeats, look, column="event_id")
    yield from _not_null(name, figures)
    yield volume(quality, name, found["ids"], history.usual(name, "volume"), gone)
    last = figures.tables[name]["high"]
    silent = None if last is None else max(figures.end - last / 1e6, 0.0)
    asks = "seconds from the last event to the end of the date, or to now"
    look = f"did {name}'s logs stop, or are they not here yet? `clickjoin status` shows the lag of each source"
    yield _limited(name, "freshness", asks, silent, quality.freshness, look, column="event_time", gone=gone)
    fields = figures.fields[name]
    for field in fields.schema():
        yield _nulls(quality, name, field, 1 - fields.share(field), history)
    yield from of_fields(name, figures, history)


def volume(quality: Quality, suite: str, ids: int, usual: Usual | None, gone: str) -> Check:
    """Distinct ids of a date against the usual number."""

    def bounds(level: Level) -> Bounds | None:
        less, more = getattr(quality.volume_drop, level), getattr(quality.volume_rise, level)
        if usual is None or (less is None and more is None):
            return None
        low = None if less is None else usual.value * (1 - less)
        return Bounds(low, None if more is None else usual.value * (1 + more))

    look = f"is all of the date's input there? Look at {suite}.source and at who writes it; then at the quarantine"
    asks = "distinct ids of the date"
    return _compared(suite, "volume", asks, ids, usual, bounds, look, column="event_id", counts=True, gone=gone)


def _foreign(quality: Quality, figures: Figures) -> Iterator[Check]:
    accounts, (bad, all_) = figures.accounts, figures.quarantine or (0, 0)
    asks = "accepted ids that are not in exactly one of joined, pending, unjoinable, expired, filtered"
    yield _none("foreign", ACCOUNTED, asks, accounts["nowhere"] + accounts["twice"], _VERIFY)
    asks = "share of the records that the date's batches quarantined, of both streams"
    look = "`clickjoin quarantine export` writes them out with the reason of each"
    share, empty = bad / all_ if all_ else None, "no metrics of the batches that landed the date"
    yield _limited("foreign", "quarantine_rate", asks, share, quality.quarantine, look, empty=empty)


def _registry(figures: Figures) -> Iterator[Check]:
    yield from _without_faults("registry", figures)
    strange = figures.tables["registry"]["strange"]
    asks = "claims whose outcome is not joined, filtered or unjoinable"
    look = "somebody else wrote to the registry: look at its history"
    yield _none("registry", "known_outcomes", asks, strange, look, "outcome")
    yield from _not_null("registry", figures)


def _signals(quality: Quality, figures: Figures, found: Processed) -> Iterator[Check]:
    twice = "somebody else wrote to `signals`: `clickjoin process --rebuild` begins again from the whole output"
    sums = "; ".join(found.faults) or "`clickjoin process` compares them"
    kinds = {
        "unique_ids": ("ids of signals that are there twice", found.twice, twice),
        "every_event_counted": ("faults of the sums of processing", len(found.faults), sums),
    }
    for name, (asks, count, look) in kinds.items():
        yield replace(_none("signals", name, asks, count, look), undecided=found.unknown)
    rows = figures.tables["joined"]["rows"]
    asks = "share of the date's events that came behind the watermark of processing"
    look = "table `process/late` names them: raise close.max_out_of_orderness, or write `late: correct`"
    empty = "the output has no rows of the date"
    share = found.late / rows if rows else None
    yield _limited("signals", "late_rate", asks, share, quality.late, look, empty=empty, gone=found.unknown)


def fault_samples(reading: Reading, names: Iterable[str]) -> dict[str, tuple[Any, ...]]:
    """Some ids of each red check that is about ids, by its name; one query for all of them."""
    about: dict[str, tuple[str, ...]] = {f"foreign.{ACCOUNTED}": _NOWHERE}
    for suite, asked in _FAULTS.items():
        about |= {f"{suite}.{name}": (kind,) for name, (_, kind) in asked.items()}
    wanted = {name: about[name] for name in names if name in about}
    if not wanted:
        return {}
    kinds = sorted({kind for found in wanted.values() for kind in found})
    order = Window.partitionBy("kind").orderBy("event_time", "event_id")
    ranked = id_places.faulty(reading, kinds).withColumn("_nth", F.row_number().over(order))
    few = ranked.where(f"_nth <= {_MAX_SAMPLES}").selectExpr("kind", "_nth", *_EVENT).orderBy("kind", "_nth")
    held: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    for row in few.collect():
        held[row["kind"]].append(_event(row) | {"kind": row["kind"]})
    return {name: tuple([one for kind in found for one in held[kind]][:_MAX_SAMPLES]) for name, found in wanted.items()}


def row_samples(rows: DataFrame, check: str) -> tuple[Any, ...]:
    """Some rows of one table that break a check of its rows."""
    if check == "landed_once":
        places = rows.groupBy("replica", "path", "offset", "source_partition").count().where("count > 1")
        found = places.orderBy("path", "offset").limit(_MAX_SAMPLES).collect()
        return tuple({"replica": row["replica"], "path": row["path"], "offset": row["offset"]} for row in found)
    if check == "known_outcomes":
        strange = rows.where(STRANGE).select("outcome").distinct()
        return tuple(row["outcome"] for row in strange.orderBy("outcome").limit(_MAX_SAMPLES).collect())
    kind, _, column = check.partition(".")
    if kind != "not_null":
        return ()
    some = rows.where(F.col(f"`{column}`").isNull()).selectExpr(*_EVENT)
    return tuple(_event(row) for row in some.orderBy("micros", "event_id").limit(_MAX_SAMPLES).collect())


def _event(row: Any) -> dict[str, str]:
    return {"event_id": row["event_id"], "event_time": moment(row["micros"]).isoformat()}
