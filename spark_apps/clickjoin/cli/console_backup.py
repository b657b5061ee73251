"""What the command line prints of backups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clickjoin.cli.console import pairs, print_json, report_line
from clickjoin.schemas.process import FOLDER


def taken(data: dict[str, Any], as_json: bool) -> None:
    """Print what a backup holds."""
    if as_json:
        return print_json(data)
    pairs(f"backup: {data['backup']}", {
        "as of": data["at"], "tables": len(data["tables"]), "files": f"{data['files']:,} ({data['bytes']:,} bytes)",
        "copied": f"{data['copied']:,} ({data['copied_bytes']:,} bytes)",
        "batches under way": ", ".join(data["under_way"]) or "none",
        "older ones removed": ", ".join(data["removed"]) or "none",
    })  # fmt: skip
    return None


def restored(data: dict[str, Any], as_json: bool, *, config: Path, dry_run: bool) -> None:
    """Print what was restored, or would be, and what to do now."""
    if as_json:
        return print_json(data | {"dry_run": dry_run})
    pairs(f"{'would restore' if dry_run else 'restored'}: {data['backup']}", {
        "as of": data["at"], "files": f"{data['files']:,} ({data['bytes']:,} bytes)",
        "batches to be run again": ", ".join(data["under_way"]) or "none",
        "the lake before": "would be put aside" if dry_run else data["aside"] or "none",
    })  # fmt: skip
    for entry in data["timeline"]:
        report_line(_taken_back(entry, config, dry_run=dry_run))
    if not dry_run:
        drain = f"clickjoin drain --config {config}"
        report_line(f"now run `{drain}` for each replica: what was joined since is read and joined again")
        if any(name.startswith(f"{FOLDER}/") for name in data["versions"]):
            report_line(f"per-key processing goes on from where it was: `clickjoin process --config {config}`")
        if data["aside"]:
            report_line(f"then `clickjoin compare --config {config} --aside {data['aside']}`: what could not be")
    return None


def _taken_back(entry: dict[str, Any], config: Path, *, dry_run: bool) -> str:
    """That a reshard came after the backup was taken, and how to have it again."""
    what = f"the reshard to {entry['shards']} shards from {entry['since']} on is newer than the backup"
    again = f"`clickjoin reshard --config {config} --shards {entry['shards']}`"
    return f"{what}, and {'would be taken back' if dry_run else f'was taken back: {again} adds one again'}"


def compared(states: dict[str, int], some: list[dict[str, Any]], as_json: bool) -> None:
    """Print how many events the other lake has joined alone, and where they are."""
    if as_json:
        return print_json({"missing": sum(states.values()), "states": states, "some": some})
    for item in some:
        report_line(f"{item['event_id']} at {item['event_time']}: {item['state']}")
    pairs("joined there and not here", {"all": sum(states.values()), **states})
    return None
