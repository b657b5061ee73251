"""What the command line prints of runs that join: what they did, how things stand after, and whether the sums agree."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from clickjoin.cli.console import pairs, print_json, report_line, short, verdict
from clickjoin.report.status import problem_text

_STATE = (
    "backlog_events",
    "lag_seconds",
    "latency_p90",
    "waiting",
    "due",
    "next_due",
    "keys_in_state",
    "watermark",
)


def summary(data: dict[str, Any], as_json: bool) -> None:
    """Print the summary of a run."""
    print_json(data) if as_json else _flows_and_state(data)


def _flows_and_state(data: dict[str, Any]) -> None:
    """What this run did, and apart from that how things stand after it."""
    pairs("done in this run", short({key: value for key, value in data.items() if key not in (*_STATE, "ok")}))
    pairs("as it stands now", short({key: value for key, value in data.items() if key in _STATE}))


def drained(data: dict[str, Any], as_json: bool) -> None:
    """Print what a drain did, its problems, what waits and why, and whether the sums agree."""
    if as_json:
        return print_json(data)
    _flows_and_state(data)
    for problem in data["problems"]:
        report_line(problem_text(**problem))
    if "accounts" in data:
        pairs("accounts of all runs: every record and every event", data["accounts"])
    if text := waits(data):
        report_line(text)
    agree = "the sums agree" if "accounts" in data else "nothing was counted (--no-check)"
    verdict(agree if data["ok"] else "something is wrong: see above", data["ok"])
    return None


def processed(data: dict[str, Any], as_json: bool) -> None:
    """Print what processing did, and whether the sums agree."""
    if as_json:
        return print_json(data)
    apart = ("verdict", "notes", "watermark_rests_on")  # sentences, too long for a table
    _flows_and_state({key: value for key, value in data.items() if key not in apart})
    if data.get("watermark_rests_on"):
        report_line(f"the watermark rests on {data['watermark_rests_on']}")
    for note in data.get("notes", ()):
        report_line(note)
    if "ok" in data:
        verdict(data["verdict"], data["ok"])
    return None


def waits(data: dict[str, Any]) -> str:
    """How many events a drain leaves waiting, and why it does; empty where none waits."""
    if not data["waiting"]:
        return ""
    one = data["waiting"] == 1
    count = "1 event waits for its" if one else f"{data['waiting']:,} events wait for their"
    count += " primary event"
    if data["due"]:
        why = f"{data['due']:,} of them are due again, since retries fall due faster than they are tried"
        return f"{count}; {why}: raise retry.first_delay or retry.backoff, or let `clickjoin run` go on"
    next_due = f"{datetime.fromisoformat(data['next_due']):%Y-%m-%dT%H:%M:%SZ}"
    return f"{count}: none is due before {next_due}, so this drain ends; `clickjoin run` or `retry` tries them then"
