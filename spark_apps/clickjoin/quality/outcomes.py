"""What came of a date's expectations: Great Expectations' own results as outcomes, one a check."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from clickjoin.quality.checks import Outcome
from clickjoin.quality.project import ours
from clickjoin.quality.shipped import FLIPPED, OWN

_EMPTY = "there are no rows of the date"
_SAMPLES = 5
_LEVEL: Mapping[str, Any] = {"critical": "fail", "warning": "warn", "info": "warn"}
_ORDER = ("failed", "warned", "undecided", "passed")
_ID, _TIME = "event_id", "event_time"


def outcomes(results: Iterable[tuple[str, Any]], rows: Mapping[str, int]) -> list[Outcome]:
    """An outcome a check. `results`: with the name of their suite; `rows`: of each asset.

    Of the two levels of a check the one counts that is broken; if neither is, the one that would warn.
    """
    found: dict[tuple[str, str], Outcome] = {}
    for suite, result in results:
        one = outcome(suite, result, rows.get(suite))
        before = found.get((one.suite, one.check))
        if before is not None and not ours(_config(result)):
            one = _apart(one, found)
            before = None
        if before is None or _rank(one) < _rank(before):
            found[one.suite, one.check] = one
    return list(found.values())


def _rank(one: Outcome) -> tuple[int, bool]:
    return _ORDER.index(one.state), one.level != "warn"


def _apart(one: Outcome, taken: Mapping[tuple[str, str], Outcome]) -> Outcome:
    number = next(n for n in range(2, 10_000) if (one.suite, f"{one.check}_{n}") not in taken)
    return Outcome(**{**one.__dict__, "check": f"{one.check}_{number}"})


def _config(result: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = result.expectation_config.to_json_dict()
    return found


def outcome(suite: str, result: Any, rows: int | None) -> Outcome:
    """What came of one expectation. `rows`: of its asset; None where that is not known."""
    config = _config(result)
    said, kwargs, kind = ours(config), dict(config.get("kwargs") or {}), str(config["type"])
    kwargs.pop("batch_id", None)
    table, _, check = str(said.get("check") or f"{suite}.{_short(kind, kwargs)}").partition(".")
    level, found = _LEVEL.get(str(config.get("severity")), "fail"), result.result or {}
    plain = bool(said) and not said.get("edited")
    common = {
        "suite": table, "check": check, "expectation": kind, "level": level,
        "column": said.get("column") or kwargs.get("column"),
        "expected": said["asks"] if plain else _said(kwargs) or kind.replace("_", " "),
    }  # fmt: skip
    theirs = not plain or said.get("look") == OWN
    empty = rows == 0 and (theirs or _class_of(kind) in FLIPPED)
    raised = _raised(result.exception_info)
    if raised and not empty:
        return Outcome(**common, success=False, observed=None, detail=f"it cannot be worked out: {raised}")
    observed = _observed(found, kind)
    why = _EMPTY if empty else "" if theirs else _undecided(said, observed)
    success = None if why else bool(result.success)
    bad = found.get("unexpected_count")
    failing = tuple(_failing(found)) if success is False else ()
    return Outcome(
        **common,
        success=success,
        observed=observed,
        unexpected=int(bad) if bad and success is False else None,
        samples=_samples(found, failing, success),
        detail=why or (None if success else _look(said, found)),
        share=_share(found),
        failing=failing,
    )


def _undecided(said: Mapping[str, Any], observed: float | None) -> str:
    """Why a shipped expectation says nothing; empty where it does."""
    return str(said.get("undecided") or (_EMPTY if observed is None else ""))


def _class_of(kind: str) -> str:
    return "".join(part.capitalize() for part in kind.split("_"))


def _look(said: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    more = (found.get("details") or {}).get("found") or ()
    look = str(said.get("look") or "an expectation of this pipeline's project: `samples` are values that break it")
    look = f"{OWN}: `samples` are values that break it" if look == OWN else look
    shown = "; ".join(more[:4]) + (f" and {len(more) - 4} more" if len(more) > 4 else "")
    return f"{shown}: {look}" if more else look


def _observed(found: Mapping[str, Any], kind: str) -> float | None:
    value = found.get("observed_value", found.get("unexpected_count"))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(1 - value, 12) if _class_of(kind) in FLIPPED else float(value)


def _share(found: Mapping[str, Any]) -> float | None:
    percent = found.get("unexpected_percent")
    return None if percent is None else float(percent) / 100


def _failing(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows that did not pass: event_id, event_time, and the values that break it, as text."""
    for row in found.get("partial_unexpected_index_list") or ():
        values = {name: value for name, value in row.items() if name not in (_ID, _TIME)}
        yield {
            _ID: row.get(_ID, row.get("id")),
            _TIME: _time(row.get(_TIME)),
            "value": ", ".join(f"{name}: {value}" for name, value in values.items()) or None,
        }


def _time(value: Any) -> datetime | None:
    """A time as Spark gives it to Python, which is the host's local one without saying so, in UTC."""
    return value.astimezone(UTC) if isinstance(value, datetime) else None


def _samples(found: Mapping[str, Any], failing: tuple[Mapping[str, Any], ...], success: bool | None) -> tuple[Any, ...]:
    details = found.get("details") or {}
    if "schema" in details:  # the next date is checked against it
        return (details["schema"], *details["found"][:4]) if details["schema"] else ()
    if success is not False:
        return ()
    ids = [str(row[_ID]) for row in failing if row[_ID] is not None]
    values = [str(one) for one in found.get("partial_unexpected_list") or () if one is not None]
    return tuple(dict.fromkeys(ids or values))[:_SAMPLES]


def _short(kind: str, kwargs: Mapping[str, Any]) -> str:
    """Name of a check that people have made, as one of the pipeline's file would have it."""
    column = kwargs.get("column")
    short = kind.removeprefix("expect_")
    return f"{short}.{re.sub('[^a-z0-9_.-]', '_', str(column).lower())}" if column else short


def _said(kwargs: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in kwargs.items() if name != "column")


def _raised(info: Any) -> str:
    """What went wrong while it was worked out, in a line; empty if nothing did."""
    infos = [info] if "raised_exception" in (info or {}) else list((info or {}).values())
    for one in infos:
        if one and one.get("raised_exception"):
            return str(one.get("exception_message") or "no reason given").strip().splitlines()[0][:300]
    return ""
