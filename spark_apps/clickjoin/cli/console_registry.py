"""What the command line prints of the registry: collections, the timeline of shards, rebuilds; and of forgetting."""

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


def forgotten(data: dict[str, Any], as_json: bool) -> None:
    """Print what was forgotten, or would be."""
    if as_json:
        return print_json(data)
    dry = data["dry_run"]
    pairs(
        "would forget" if dry else "forgotten",
        {
            **{f"{name} events": f"{count:,}" for name, count in data["events"].items()},
            "bad records": f"{data['bad_records']:,}",
            **{f"{name}: rows": f"{count:,}" for name, count in data["rows"].items()},
            **{f"such as ({name})": ", ".join(ids) for name, ids in data["samples"].items() if ids},
        },
    )
    if dry:
        report_line("nothing was changed; the same with --apply does it")
        return None
    report_line(
        f"older versions of the tables hold these records until `clickjoin gc` removes their files, "
        f"after {data['bytes_kept_until'][:16]} UTC; logs and backups hold them until you remove them"
    )
    for token in data["open"]:
        report_line(f"{token} is not settled, and may land such a record: then run `clickjoin verify --repair`")
    return None
