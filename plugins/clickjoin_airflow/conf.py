"""What a run is asked for: only what its DAG takes."""

from __future__ import annotations

from typing import Any

from airflow.sdk.exceptions import AirflowFailException


def require_known(context: Any) -> None:
    """Check a run's conf before a task does anything. Errors: AirflowFailException for a name that the form lacks.

    Airflow passes over such a name, and a collection with `dry_rn` would delete.
    """
    taken = sorted(context["dag"].params)
    unknown = sorted(set(context["dag_run"].conf or {}) - set(taken))
    if unknown:
        raise AirflowFailException(
            f"the run's conf names {', '.join(unknown)}, which this DAG does not take, and nothing was done; it takes "
            f"{', '.join(taken)}. Trigger it again"
        )
