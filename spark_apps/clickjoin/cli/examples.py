"""An example of each command, which its `--help` ends with."""

from __future__ import annotations

from collections.abc import Mapping

import typer

EXAMPLES: Mapping[str, str] = {
    "init": 'init --config shop.yaml --from-logs "logs/clicks/*" --primary "logs/queries/*"',
    "generate": "generate logs --clicks 1000 --seed 1",
    "validate": "validate --config shop.yaml",
    "run": "run --config shop.yaml",
    "drain": "drain --config shop.yaml",
    "retry": "retry --config shop.yaml",
    "redrive": "redrive --config shop.yaml",
    "process": "process --config trends.yaml --lease 60",
    "status": "status --config shop.yaml",
    "explain": "explain c1 --config shop.yaml",
    "pending": "pending --config shop.yaml --by hour",
    "unjoinable": "unjoinable --config shop.yaml --from 2026-03-01T12:00Z --limit 100",
    "expired": "expired --config shop.yaml --by hour",
    "quarantine": "quarantine --config shop.yaml --by reason",
    "quarantine export": "quarantine export --config shop.yaml --stream foreign --out logs/clicks/again.jsonl",
    "signals": "signals --config trends.yaml --key 17",
    "verify": "verify --config shop.yaml --from 2026-03-01T00:00Z --to 2026-03-02T00:00Z --repair",
    "quality": "quality --config shop.yaml --date 2026-03-01",
    "quality gx": "quality gx --config shop.yaml --to docs-of-quality --offline",
    "close": 'close 2026-03-01 --config shop.yaml --reason "two orphans, seen"',
    "backfill": "backfill --config shop.yaml --from 2026-03-01 --to 2026-03-07 --mode rebuild --dry-run",
    "dates": "dates --config shop.yaml",
    "gc": "gc --config shop.yaml --dry-run",
    "reshard": "reshard --config shop.yaml --shards 12",
    "registry rebuild": "registry rebuild --config shop.yaml --replace",
    "journal rebuild": "journal rebuild --config shop.yaml --replace",
    "backup": "backup --config shop.yaml --to /mnt/backups --keep 14",
    "restore": "restore --config shop.yaml --from /mnt/backups --dry-run",
    "compare": "compare --config shop.yaml --aside lake/shop.put-aside-20260301T030000Z",
    "forget": "forget --config shop.yaml --where foreign.user_id=U17",
    "jars": "jars --fetch",
    "schema": "schema --config-file",
}


def add_to(app: typer.Typer, group: str = "") -> None:
    """Have the help of each command end with its example. Errors: KeyError for a command that has none."""
    for command in app.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "").replace("_", "-")
        command.epilog = _shown(f"{group} {name}".strip())
    for each in app.registered_groups:
        members = each.typer_instance
        if members is not None and each.name:
            add_to(members, each.name)
            if members.registered_callback:
                each.epilog = _shown(each.name)


def _shown(name: str) -> str:
    return f"Example: clickjoin {EXAMPLES[name]}"
