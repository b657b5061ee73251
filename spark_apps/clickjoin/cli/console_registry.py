"""What the command line prints of the registry: collections, the timeline of shards, rebuilds."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from clickjoin.cli.console import pairs, print_json, report_line, wide


def collected(data: dict[str, Any], as_json: bool) -> None:
    """Print what a collection did, or would do."""
    if as_json:
        return print_json(data)
    pairs(
        "would collect" if data["dry_run"] else "collected",
        {
            "boundary": f"{data['boundary_before'] or 'none'} → {data['boundary'] or 'none'}",
            **{
                f"{name}: partitions' rows": f"{size['rows']:,} ({size['bytes']:,} bytes)"
                for name, size in data["dropped"].items()
            },
            **{f"{name}: history": rows for name, rows in data["rows"].items()},
            **{f"batches {name}": ", ".join(tokens) or "none" for name, tokens in data["stragglers"].items()},
            **{f"files {name}": sum(data[name].values()) for name in ("rewritten", "removed") if name in data},
        },
    )
    return None


def shards(data: dict[str, Any], as_json: bool) -> None:
    """Print the timeline of shards, and what each holds."""
    if as_json:
        return print_json(data)
    timeline = Table("events from", "shards", "added", title="timeline", title_justify="left")
    for entry in data["timeline"]:
        since = "ever" if entry["since"].startswith("1970-01-01T00:00:00") else entry["since"]
        timeline.add_row(since, str(entry["shards"]), entry["added_at"][:19] + (" (void)" if entry["void"] else ""))
    held = Table("shard", "rows", "files", "bytes", "boundary", title="registry by shard", title_justify="left")
    for number, part in data["shards"].items():
        held.add_row(number, f"{part['rows']:,}", str(part["files"]), f"{part['bytes']:,}", part["boundary"] or "none")
    wide(timeline)
    wide(held)
    return None


def rebuilt(what: str, data: dict[str, Any], as_json: bool) -> None:
    """Print what a rebuilding found."""
    if as_json:
        return print_json(data)
    flat = {
        key: ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
        for key, value in data.items()
    }
    pairs(f"{what} rebuilt", flat)
    report_line("now run `clickjoin verify --repair`: it finds what was under way when it was lost")
    return None
