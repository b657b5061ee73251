"""A job's summary as a short list, for the log of the task that ran it. What is zero or empty is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clickjoin.model.reporter import figure

_SAID = ("ok", "verdict", "dry_run", "known")
_SECONDS = ("seconds", "lag_seconds", "latency_p50", "latency_p90", "latency_p99")
_MOST = 10  # entries of a list


def summary_lines(job: str, summary: Mapping[str, Any]) -> list[str]:
    """What a job did, or in a dry run would do: a heading, then a line for each figure, note or date."""
    plan = summary.get("dry_run")
    if isinstance(plan, list):
        head, listed = f"{job}, dry run: nothing was changed", [f"- {text}" for text in map(_date, plan)]
    else:
        head = f"{job}, dry run: nothing was changed" if plan else f"{job}: {summary.get('verdict') or 'done'}"
        listed = [line for name, value in summary.items() if name not in _SAID for line in _field(name, value)]
    return [head, *(listed or ["- nothing to do"])]


def _field(name: str, value: Any) -> Iterator[str]:
    """The lines of one field: a list has one for each of its entries."""
    words = name.replace("_", " ")
    if isinstance(value, Sequence) and not isinstance(value, str):
        yield from (f"- {words}: {_text(item)}" for item in value[:_MOST])
        if len(value) > _MOST:
            yield f"- {words}: {len(value) - _MOST:,} more"
    elif name == "pipelines" and isinstance(value, Mapping):
        yield from (f"- {key}: {_text(part) or 'nothing'}" for key, part in value.items())
    elif text := _text(value, name):
        yield f"- {words}: {text}"


def _text(value: Any, name: str = "") -> str:
    """One value in words; empty where there is nothing to say."""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, int | float):
        return "" if not value else f"{figure(value)} s" if name in _SECONDS else figure(value)
    if isinstance(value, Mapping):
        parts = ((str(key).replace("_", " "), _text(part)) for key, part in value.items())
        return ", ".join(f"{key} {text}" for key, text in parts if text)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "; ".join(text for item in value if (text := _text(item)))
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
