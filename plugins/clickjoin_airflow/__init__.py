"""The only bridge between Airflow and clickjoin. Importing it must stay cheap: DAG files do so every few seconds."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clickjoin_airflow.dags import dags_for
    from clickjoin_airflow.operator import ClickjoinOperator
    from clickjoin_airflow.pipelines import require_readable

__all__ = ["ClickjoinOperator", "dags_for", "require_readable"]
_PLACES = {"ClickjoinOperator": "operator", "dags_for": "dags", "require_readable": "pipelines"}


def __getattr__(name: str) -> Any:
    """Import what is asked for, then: Airflow asks its providers who they are before it can be imported itself."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
