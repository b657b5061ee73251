"""What a chaos run must have shown."""

from __future__ import annotations

from tests.faults.chaos.run import Outcome


def check(outcome: Outcome) -> list[str]:
    """What is wrong, in sentences; nothing if all is well."""
    found = outcome.verdict
    faults = {
        "doubled": found.doubled, "lost": found.lost, "invented": found.extra, "joined wrongly": found.wrong,
        "in two places": found.two_places,
    }  # fmt: skip
    wrong = [f"{len(ids)} clicks {name}: {sorted(ids)[:5]}" for name, ids in faults.items() if ids]
    if found.clicks != outcome.clicks:
        wrong.append(f"{outcome.clicks} clicks were written, and the logs hold {found.clicks}")
    if found.pending:
        wrong.append(f"{found.pending} clicks still wait, though every query has come")
    if found.joined + found.expired + found.unjoinable != found.clicks:
        wrong.append("the sums do not agree")
    return wrong + outcome.wrong
