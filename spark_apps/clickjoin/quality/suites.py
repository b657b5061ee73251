"""The suites: every check of our own on `joined`, `primary`, `foreign` and `registry`, made from a date's figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from clickjoin.quality import limits
from clickjoin.quality.checks import ACCOUNTED, ZERO, Check
from clickjoin.quality.profile_queries import REQUIRED
from clickjoin.quality.schema_drift import of_columns, of_fields

if TYPE_CHECKING:
    from clickjoin.config.quality import Quality
    from clickjoin.quality.history import History
    from clickjoin.quality.processed import Processed
    from clickjoin.quality.profile import Figures

_VERIFY = "run `clickjoin verify` for this date: it names each id, and --repair fixes what can be fixed"
_GONE = "rows of the date may have been collected (retention.{})"


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


def none(suite: str, name: str, asks: str, count: float, look: str, column: str | None = None) -> Check:
    """A check that there is nothing of a kind."""
    return Check(suite, name, asks, count, fail=ZERO, column=column, look=look, counts=True)


def _not_null(suite: str, figures: Figures) -> Iterator[Check]:
    for column in (name for name in REQUIRED[suite] if f"null:{name}" in figures.tables[suite]):
        found = figures.tables[suite][f"null:{column}"]
        asks = f"rows whose {column} is null"
        look = f"somebody else wrote to `{suite}`, for clickjoin never leaves {column} empty: look at its history"
        yield none(suite, f"not_null.{column}", asks, found, look, column)


def _joined(quality: Quality, figures: Figures, history: History) -> Iterator[Check]:
    seen, accounts, rows = figures.tables["joined"], figures.accounts, figures.tables["joined"]["rows"]
    yield none("joined", "unique_ids", "ids that are there twice", accounts["fault:doubled"], _VERIFY, "event_id")
    asks = "ids whose record never landed"
    yield none("joined", "known_ids", asks, accounts["fault:unknown_output"], _VERIFY, "event_id")
    yield from _not_null("joined", figures)
    gone = _GONE.format("foreign") if "foreign" in figures.collected else ""
    share = accounts["joined"] / accounts["accepted"] if accounts["accepted"] else None
    yield limits.completeness(quality, share, history.usual("joined", "completeness"), gone)
    for name in ("delay_p50", "delay_p90", "delay_p99"):
        yield limits.delay(quality, name, seen[name], history.usual("joined", name))
    for column in (key.removeprefix("null:") for key in seen if key.startswith("null:")):
        if column not in REQUIRED["joined"]:
            usual = history.usual("joined", f"null_rate.{column}")
            yield limits.nulls(quality, "joined", column, seen[f"null:{column}"] / rows if rows else None, usual)
    for column in figures.typed:
        found = (figures.misfits[0].get(column, 0), figures.misfits[1]) if figures.misfits else None
        yield limits.misfits(quality, column, found)
    yield from of_columns(figures, history)


def _stream(name: str, quality: Quality, figures: Figures, history: History) -> Iterator[Check]:
    found, rows = figures.streams[name], figures.tables[name]["rows"]
    gone = _GONE.format(name) if name in figures.collected else ""
    look = f"bytes were read twice: `clickjoin verify` names them as `overread`, and `{name}`'s history who wrote them"
    yield none(name, "landed_once", "records that one replica has landed twice", found["twice"], look)
    yield limits.repeats(quality, name, found["repeats"] / rows if rows else None)
    yield from _not_null(name, figures)
    yield limits.volume(quality, name, found["ids"], history.usual(name, "volume"), gone)
    yield limits.freshness(quality, name, figures, gone)
    fields = figures.fields[name]
    for field in fields.schema():
        usual = history.usual(name, f"null_rate.{field}")
        yield limits.nulls(quality, name, field, 1 - fields.share(field), usual)
    yield from of_fields(name, figures, history)


def _foreign(quality: Quality, figures: Figures) -> Iterator[Check]:
    accounts = figures.accounts
    asks = "accepted ids that are not in exactly one of joined, pending, unjoinable, expired, filtered"
    yield none("foreign", ACCOUNTED, asks, accounts["nowhere"] + accounts["twice"], _VERIFY)
    yield limits.quarantine(quality, figures.quarantine)


def _registry(figures: Figures) -> Iterator[Check]:
    accounts = figures.accounts
    kinds = {
        "unique_ids": ("ids that have two claims", "doubled_claim"),
        "claims_have_outputs": ("claims whose id is in no table", "claim_without_output"),
        "outputs_have_claims": ("ids in a table of outputs that have no claim", "output_without_claim"),
        "claims_agree": ("claims that name another batch or table than their row", "wrong_token"),
    }
    for name, (asks, kind) in kinds.items():
        yield none("registry", name, asks, accounts[f"fault:{kind}"], _VERIFY, "event_id")
    strange = figures.tables["registry"]["strange"]
    asks = "claims whose outcome is not joined, filtered or unjoinable"
    look = "somebody else wrote to the registry: look at its history"
    yield none("registry", "known_outcomes", asks, strange, look, "outcome")
    yield from _not_null("registry", figures)


def _signals(quality: Quality, figures: Figures, found: Processed) -> Iterator[Check]:
    twice = "somebody else wrote to `signals`: `clickjoin process --rebuild` begins again from the whole output"
    sums = "; ".join(found.faults) or "`clickjoin process` compares them"
    kinds = {
        "unique_ids": ("ids of signals that are there twice", found.twice, twice),
        "every_event_counted": ("faults of the sums of processing", len(found.faults), sums),
    }
    for name, (asks, count, look) in kinds.items():
        yield replace(none("signals", name, asks, count, look), undecided=found.unknown)
    yield limits.late(quality, found.late, figures.tables["joined"]["rows"], found.unknown)
