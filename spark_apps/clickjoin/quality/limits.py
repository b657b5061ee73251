"""Figures that are checked against limits of the pipeline's file, and against what is usual."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickjoin.quality.checks import Bounds, Check

if TYPE_CHECKING:
    from clickjoin.config.quality import Late, Limit, Quality
    from clickjoin.quality.history import Usual
    from clickjoin.quality.profile import Figures

_SHORT = 10.0  # seconds: below this a delay is good, however much it has grown
_EMPTY = "there are no rows of the date"
_YOUNG = "too few earlier dates to say what is usual"


def volume(quality: Quality, suite: str, ids: int, usual: Usual | None, gone: str) -> Check:
    """Distinct ids of a date against the usual number."""
    drop, rise = quality.volume_drop, quality.volume_rise

    def bounds(level: str) -> Bounds | None:
        less, more = getattr(drop, level), getattr(rise, level)
        if usual is None or (less is None and more is None):
            return None
        low = None if less is None else usual.value * (1 - less)
        return Bounds(low, None if more is None else usual.value * (1 + more))

    asks = f"distinct ids of the date{_usually(usual)}"
    look = f"is all of the date's input there? Look at {suite}.source and at who writes it; then at the quarantine"
    why = gone or _missing(usual)
    return Check(
        suite, "volume", asks, ids, bounds("fail"), bounds("warn"), "event_id", look, counts=True, undecided=why
    )


def completeness(quality: Quality, share: float | None, usual: Usual | None, gone: str) -> Check:
    """Share of the accepted ids that are joined, against the usual share and against the limit."""
    fall, lack = quality.completeness_drop, quality.completeness_lack

    def bounds(level: str) -> Bounds | None:
        down, most = getattr(fall, level), getattr(lack, level)
        lows = [usual.value - down] if usual and down is not None else []
        lows += [1 - most] if most is not None else []
        return Bounds(max(0.0, *lows) if lows else None) if lows else None

    limited = lack.warn is not None or lack.fail is not None
    why = gone or (_EMPTY if share is None else "" if limited else _missing(usual))
    asks = f"share of the accepted ids that are joined{_usually(usual)}"
    look = (
        "did primary events come late or not at all? `clickjoin status` shows what waits; primary.volume how many came"
    )
    return Check("joined", "completeness", asks, share, bounds("fail"), bounds("warn"), look=look, undecided=why)


def delay(quality: Quality, name: str, seconds: float | None, usual: Usual | None) -> Check:
    """Seconds from event to output, against the usual delay; p99 against its limit too."""
    growth, limit = quality.delay_growth, quality.delay_p99

    def bounds(level: str) -> Bounds | None:
        times, most = getattr(growth, level), getattr(limit, level)
        highs = [max(usual.value * times, _SHORT)] if usual and times is not None else []
        highs += [most] if most is not None and name == "delay_p99" else []
        return Bounds(high=min(highs)) if highs else None

    limited = name == "delay_p99" and (limit.warn is not None or limit.fail is not None)
    why = _EMPTY if seconds is None else "" if limited else _missing(usual)
    share = name.removeprefix("delay_p")
    asks = f"seconds from event to output that {share} in 100 stay below{_usually(usual)}"
    look = "was the date joined late, or filled in afterwards? Table `metrics` has the latency of each batch"
    return Check("joined", name, asks, seconds, bounds("fail"), bounds("warn"), look=look, undecided=why)


def nulls(quality: Quality, suite: str, column: str, share: float | None, usual: Usual | None) -> Check:
    """Share of the rows in which a column or field has no value, against the usual share."""

    def bounds(most: float | None) -> Bounds | None:
        return Bounds(high=min(usual.value + most, 1.0)) if usual and most is not None else None

    rise = quality.null_rise
    why = _EMPTY if share is None else _missing(usual)
    asks = f"share of the rows without {column}{_usually(usual)}"
    look = f"who writes {column} leaves it empty more often: ask them, or see what the adapter makes of it"
    return Check(
        suite, f"null_rate.{column}", asks, share, bounds(rise.fail), bounds(rise.warn), column, look, undecided=why
    )


def freshness(quality: Quality, suite: str, figures: Figures, gone: str) -> Check:
    """Seconds without events at the end of the date."""
    last = figures.tables[suite]["high"]
    silent = None if last is None else max(figures.end - last / 1e6, 0.0)
    why = gone or (_EMPTY if silent is None else _off(quality.freshness))
    asks = "seconds from the last event to the end of the date, or to now"
    look = f"did {suite}'s logs stop, or are they not here yet? `clickjoin status` shows the lag of each source"
    fail, warn = (_most(limit) for limit in (quality.freshness.fail, quality.freshness.warn))
    return Check(suite, "freshness", asks, silent, fail, warn, "event_time", look, undecided=why)


def quarantine(quality: Quality, found: tuple[int, int] | None) -> Check:
    """Share of the records of both streams that were quarantined, by the batches that landed the date's clicks."""
    bad, all_ = found or (0, 0)
    limit, share = quality.quarantine, bad / all_ if all_ else None
    why = "no metrics of the batches that landed the date" if share is None else _off(limit)
    asks = "share of the records that the date's batches quarantined, of both streams"
    look = "`clickjoin quarantine export` writes them out with the reason of each"
    fail, warn = _most(limit.fail), _most(limit.warn)
    return Check("foreign", "quarantine_rate", asks, share, fail, warn, look=look, undecided=why)


def late(quality: Quality, count: int, rows: int, unknown: str) -> Check:
    """Share of the output's rows of the date that came behind the watermark of per-key processing."""
    limit, share = quality.late, count / rows if rows else None
    why = unknown or ("the output has no rows of the date" if share is None else _off(limit))
    asks = "share of the date's events that came behind the watermark of processing"
    look = "table `process/late` names them: raise close.max_out_of_orderness, or write `late: correct`"
    return Check("signals", "late_rate", asks, share, _most(limit.fail), _most(limit.warn), look=look, undecided=why)


def misfits(quality: Quality, column: str, found: tuple[int, int] | None) -> Check:
    """Share of a typed column's values that did not fit its type, of all rows that the date's batches published."""
    bad, all_ = found or (0, 0)
    limit, share = quality.misfits, bad / all_ if all_ else None
    why = "no metrics of the batches that published the date" if share is None else _off(limit)
    asks = f"share of the values of {column} that did not fit its type, of the date's batches"
    look = f"the records hold other values than output.columns.{column} says: ask who writes them, or change the column"
    fail, warn = _most(limit.fail), _most(limit.warn)
    return Check("joined", f"misfit_rate.{column}", asks, share, fail, warn, column, look, undecided=why)


def repeats(quality: Quality, suite: str, share: float | None) -> Check:
    """Share of the records whose id had come before."""
    limit = quality.repeats
    why = _EMPTY if share is None else _off(limit)
    asks = "share of the records whose id was there before"
    look = f"who writes {suite}'s logs sends records again; they are joined once all the same"
    fail, warn = _most(limit.fail), _most(limit.warn)
    return Check(suite, "repeat_rate", asks, share, fail, warn, "event_id", look, undecided=why)


def _most(value: float | None) -> Bounds | None:
    return None if value is None else Bounds(high=value)


def _off(limit: Limit | Late) -> str:
    return "it has no limit" if limit.warn is None and limit.fail is None else ""


def _missing(usual: Usual | None) -> str:
    return "" if usual else _YOUNG


def _usually(usual: Usual | None) -> str:
    return f" (usually {usual.text})" if usual else ""
