"""The rules of time zones that a lake's events are read by: those of the first host that read any (model.zones)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from clickjoin.dispatcher.journal import FENCE
from clickjoin.model.errors import LakeError
from clickjoin.model.txn import Txn
from clickjoin.schemas.format import ZONES

if TYPE_CHECKING:
    from clickjoin.engines.tables_port import Tables

_STATE = "zones"


def keep_zones(delta: Tables, rules: Mapping[str, str], now: datetime) -> None:
    """Have the lake say by which rules local times are read; `rules`: this host's, by zone.

    Errors: LakeError where the lake has others.
    """
    if not rules:
        return
    kept = delta.zones
    if new := sorted(rules.keys() - kept.keys()):
        kept = kept | _first(delta, {zone: rules[zone] for zone in new}, now)
    if other := [zone for zone in sorted(rules) if kept[zone] != rules[zone]]:
        own = json.dumps({**kept, **rules}, separators=(",", ":"))
        raise LakeError(
            f"{delta.root}: time zone {', '.join(other)} has other rules on this host than where the lake's "
            "events were read: the same record would be another event here",
            remedy="Give all hosts the same tzdata. Only if none but this one is right: read no record again from "
            f"before the rules' change, and run ALTER TABLE delta.`{delta.path('journal')}` SET TBLPROPERTIES "
            f"('{ZONES}'='{own}')",
        )
    delta.set_zones(rules)


def _first(delta: Tables, rules: Mapping[str, str], now: datetime) -> dict[str, str]:
    """What the first host has said of zones that the lake's property does not name yet; this one may be one.

    A property is written over, so of two hosts that begin at once each would find its own; a transaction is there once.
    """
    for zone, digest in rules.items():
        row = {
            "replica": "all", "sequence": FENCE, "batch": 0, "state": _STATE, "at": now, "snapshot": False,
            "plan": json.dumps({zone: digest}),
        }  # fmt: skip
        delta.append("journal", [row], Txn(f"zones/{zone}", 1))
    said = dict(rules)
    for plan in delta.read("journal", [("state", "=", _STATE)], ["plan"])["plan"].to_pylist():
        said |= json.loads(plan)
    return {zone: said[zone] for zone in rules}
