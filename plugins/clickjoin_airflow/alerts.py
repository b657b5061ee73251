"""Alerts: a function of the user's own, called when a task of a pipeline fails or is tried again."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

_log = logging.getLogger(__name__)


def failed(context: Mapping[str, Any]) -> None:
    """Airflow calls this when a task has failed for good."""
    _call(context, "failed")


def retrying(context: Mapping[str, Any]) -> None:
    """Airflow calls this at each failed try; the alert goes out on tries 1, 2, 4, 8 and so on, as they can be many."""
    number = int(context["ti"].try_number)
    if number & (number - 1) == 0:
        _call(context, "retrying")


def _call(context: Mapping[str, Any], state: str) -> None:
    """Call the hook, if there is one; what goes wrong in it is logged, and changes nothing for the task."""
    name = _hook()
    if not name:
        return
    try:
        module, _, function = name.partition(":")
        hook: Callable[[dict[str, Any]], object] = getattr(import_module(module), function)
        hook(alert(context, state))
    except Exception:
        _log.exception("the alert hook %s failed", name)


def _hook() -> str:
    if own := os.environ.get("CLICKJOIN_ALERT"):
        return own
    from airflow.sdk import Variable

    return str(Variable.get("clickjoin_alert", default="") or "")


def alert(context: Mapping[str, Any], state: str) -> dict[str, Any]:
    """What the hook is given: plain text and numbers. `error`: what was raised, in words; `at`: ISO 8601, UTC."""
    ti, task = context["ti"], context.get("task")
    error = context.get("exception")
    return {
        "state": state,
        "pipeline": ti.dag_id.partition("__")[2],
        "job": getattr(task, "job", ti.task_id),
        "replica": getattr(task, "replica", None),
        "tables": getattr(task, "tables", None),
        "error": str(error) if error is not None else "",
        "dag_id": ti.dag_id,
        "run_id": ti.run_id,
        "task_id": ti.task_id,
        "try_number": ti.try_number,
        "log_url": getattr(ti, "log_url", None),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
