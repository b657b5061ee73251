"""Summaries as short lists of lines: for the log of a task, where zeros are left out, and whole for a shell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clickjoin.model.reporter import figure

_SAID = ("ok", "verdict", "dry_run", "known")
_SECONDS = ("seconds", "lag_seconds", "latency_p50", "latency_p90", "latency_p99")
_STATE = ("backlog_events", "lag_seconds", "latency_p90", "waiting", "due", "next_due", "keys_in_state", "watermark")
_MOST = 10  # entries of a list


def summary_lines(job: str, summary: Mapping[str, Any], *, whole: bool = False) -> list[str]:
    """What a job did, or in a dry run would do: a heading, then a line for each figure, note or date.

    `whole`: zeros too, lists to their end, how things stand after the run apart; the caller says the verdict.
    """
    plan = summary.get("dry_run")
    if isinstance(plan, list):
        head, listed = f"{job}, dry run: nothing was changed", [f"- {text}" for text in map(_date, plan)]
    else:
        done = "done" if whole else summary.get("verdict") or "done"
        head = f"{job}, dry run: nothing was changed" if plan else f"{job}: {done}"
        shown = {name: value for name, value in summary.items() if name not in _SAID}
        state = {name: shown.pop(name) for name in _STATE if name in shown} if whole else {}
        listed = field_lines(shown, whole=whole)
        listed += ["as it stands now", *field_lines(state, whole=True)] if state else []
    return [head, *(listed or ["- nothing to do"])]


def field_lines(data: Mapping[str, Any], *, whole: bool = True) -> list[str]:
    """A line for each figure and each entry of a list. Not `whole`: without zeros, and of a list the first ten."""
    return [line for name, value in data.items() for line in _field(name, value, whole)]


def _field(name: str, value: Any, whole: bool) -> Iterator[str]:
    """The lines of one field: a list has one for each of its entries, and so has a mapping of mappings."""
    words = name.replace("_", " ")
    if isinstance(value, Sequence) and not isinstance(value, str):
        most = len(value) if whole else _MOST
        yield from (f"- {words}: {_text(item, whole=whole)}" for item in value[:most])
        if len(value) > most:
            yield f"- {words}: {len(value) - most:,} more"
        if whole and not value:
            yield f"- {words}: none"
    elif isinstance(value, Mapping) and (name == "pipelines" or (whole and _is_table(value))):
        of = "" if name == "pipelines" else f"{words} "
        yield from (f"- {of}{key}: {_text(part, whole=whole) or 'nothing'}" for key, part in value.items())
    elif text := _text(value, name, whole) or ("none" if whole else ""):
        yield f"- {words}: {text}"


def _is_table(value: Mapping[str, Any]) -> bool:
    return any(isinstance(part, Mapping) for part in value.values())


def _text(value: Any, name: str = "", whole: bool = False) -> str:
    """One value in words; empty where there is nothing to say."""
    if isinstance(value, bool):
        return "yes" if value else "no" if whole else ""
    if isinstance(value, int | float):
        return "" if not (value or whole) else f"{figure(value)} s" if name in _SECONDS else figure(value)
    if isinstance(value, Mapping):
        parts = ((str(key).replace("_", " "), _text(part, str(key), whole)) for key, part in value.items())
        return ", ".join(f"{key} {text}" for key, text in parts if text)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "; ".join(text for item in value if (text := _text(item, whole=whole)))
    return "" if value is None else str(value)


def _date(row: Mapping[str, Any]) -> str:
    """What a backfill would do to a date: a row of `dry_run.outline`."""
    head = f"{row['date']}, {row['state']}, {row['rows']:,} rows joined: would"
    if missing := _text(row.get("missing", {})):
        return f"{head} be refused: ids cannot be rebuilt ({missing})"
    would = [f"rebuild {row['rebuilt']:,} rows"] if "rebuilt" in row else []
    tried = [f"{row[name]:,} {name}" for name in ("pending", "unjoinable", "expired") if row.get(name)]
    would += [f"try again {' and '.join(tried)}"] if tried else []
    return f"{head} {', '.join(would) or 'change nothing'}"
