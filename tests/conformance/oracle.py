"""Counts ids in the logs and in every output, by no code of the product, and compares rows with an undisturbed run."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import deltalake

from tests import oracle

# What differs between two runs that keep the promise: times of work, tokens, numbers of batches, where files lie.
_APART = {"token", "batch", "replica", "path", "source_partition", "shard", "first_seen", "due_at", "sequence"}
_COMPARED = (
    "primary", "foreign", "joined", "deduplicated", "filtered", "unjoinable", "expired", "pending", "quarantine",
    "registry", "forgotten",
)  # fmt: skip
Rows = dict[str, list[str]]


def rows(tables: Path, name: str) -> list[dict[str, Any]]:
    """All rows of the newest version of a table."""
    found: list[dict[str, Any]] = deltalake.DeltaTable(str(tables / name)).to_pyarrow_table().to_pylist()
    return found


def state(tables: Path) -> Rows:
    """What every output holds, as text, without what two right runs differ in."""
    return {
        name: sorted(repr({key: row[key] for key in sorted(row) if not _is_apart(key)}) for row in rows(tables, name))
        for name in _COMPARED
        if (tables / name).is_dir()
    }


def writers(tables: Path) -> set[str]:
    """Who has made the commits of all tables, as their logs say."""
    entries = (line for path in tables.glob("*/_delta_log/*.json") for line in path.read_text().splitlines())
    infos = (json.loads(entry).get("commitInfo") for entry in entries if '"commitInfo"' in entry)
    return {re.split("[/: ]", info["engineInfo"])[0] for info in infos if info and "engineInfo" in info}


def _is_apart(column: str) -> bool:
    return column in _APART or column == "at" or column.endswith("_at")


def faults(folder: Path, tables: Path, *, copies: int = 1) -> dict[str, object]:
    """What is wrong, by name; empty where the promise holds. `copies`: so many replicas have read the logs."""
    found = _claims(tables)
    if (tables / "deduplicated").is_dir():
        return found | _one_stream(folder, tables)
    verdict = oracle.examine(str(folder / "foreign/*"), str(folder / "primary/*"), tables)
    gone = {row["event_id"] for row in rows(tables, "forgotten")}
    # Of what was forgotten the rows are gone as well, and a boundary that moved takes old rows of the streams with it.
    whole = copies == 1 and not gone and not rows(tables, "registry_boundary")
    kinds = {name: getattr(verdict, name) for name in oracle.FAULTS if whole or name != "unaccounted"}
    left = {name: ids if name == "unaccounted" else ids - gone for name, ids in kinds.items()}
    return found | {name: ids for name, ids in left.items() if ids}


def _claims(tables: Path) -> dict[str, object]:
    claims = Counter(row["event_id"] for row in rows(tables, "registry"))
    doubled = {event for event, count in claims.items() if count > 1}
    return {"doubled_claims": doubled} if doubled else {}


def _one_stream(folder: Path, tables: Path) -> dict[str, object]:
    """By id alone: every id of the logs once in the output, and nothing else."""
    lines = [line for path in (folder / "foreign").iterdir() for line in path.read_text().splitlines()]
    logged = {json.loads(line)["messageId"] for line in lines if line.startswith("{") and line.endswith("}")}
    out = Counter(row["event_id"] for row in rows(tables, "deduplicated"))
    kinds = {
        "doubled": {event for event, count in out.items() if count > 1},
        "lost": logged - out.keys() - {row["event_id"] for row in rows(tables, "expired")},
        "extra": out.keys() - logged,
    }
    return {name: ids for name, ids in kinds.items() if ids}
