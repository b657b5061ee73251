"""The table in docs/access.md that says which of Airflow's roles may do what."""

from __future__ import annotations

import re

from bootstrap import ROOT

ROLES = ("viewer", "user", "op", "admin")
ROUTE, FORM = "GET /clickjoin", "clickjoin_"


def table() -> dict[str, dict[str, bool]]:
    """By route or form, whether each role may."""
    text = (ROOT / "docs/access.md").read_text(encoding="utf-8")
    part = text.partition("## Who may do what")[2].partition("\n## ")[0]
    assert f"| {' | '.join(ROLES)} |" in part
    found = {}
    for name, cells in re.findall(r"^\| `([^`]+)` \|[^|]*\|(.*)\|$", part, re.MULTILINE):
        words = [cell.strip() for cell in cells.split("|")]
        assert len(words) == len(ROLES), name
        assert set(words) <= {"yes", "no"}, name
        found[name] = {role: word == "yes" for role, word in zip(ROLES, words, strict=True)}
    return found
