"""The look that every program takes before it writes: tables that do not fit together are refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickjoin.agreement.facts import ACCOUNTED, Facts, gather
from clickjoin.agreement.rules import Disagreement, disagreements, first_of_each
from clickjoin.model.errors import LakeError

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake.delta_reader import DeltaReader

_SHOWN = 3


def require_agreement(delta: DeltaReader, pipeline: Pipeline, fresh: DeltaReader | None = None) -> None:
    """Check that every table holds what the journal says, and no more. `fresh`: as of `gather`.

    Errors: LakeError, which names what does not.
    """
    facts = gather(delta, pipeline.pipeline, fresh)
    found = disagreements(facts)
    if found:
        raise refusal(found)
    remember(delta, facts)


def remember(delta: DeltaReader, facts: Facts) -> None:
    """Have this process count the versions that were lost and accounted for."""
    delta.noted.lost |= {
        name: log.txns[ACCOUNTED] for name, log in facts.logs.items() if log.txns.get(ACCOUNTED, 0) > 0
    }


def refusal(found: list[Disagreement]) -> LakeError:
    """The error that names what does not fit together, the weightiest first."""
    tables = first_of_each(found)
    shown = "; ".join(one.text for one in tables[:_SHOWN])
    more = f"; and {len(tables) - _SHOWN} more" if len(tables) > _SHOWN else ""
    return LakeError(f"{shown}{more}", remedy=found[0].remedy)
