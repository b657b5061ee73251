"""Tasks about dates: waiting until one is complete, and working through some."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue, task
from airflow.sdk.exceptions import AirflowFailException

from clickjoin_airflow import defaults
from clickjoin_airflow.operator import ClickjoinOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from clickjoin_airflow.pipelines import PipelineFile

# Its slots are how many dates are worked on at a time: few, so that joins beside them stay fresh.
POOL = os.environ.get("CLICKJOIN_POOL", "default_pool")
_DAYS = 3660


class DateCompleteSensor(BaseSensorOperator):
    """Waits until a date is complete, or until its limit is over; frees its slot between two looks. Needs no Spark.

    `reason`: why it is not to be waited for. XCom: date, ready, why, late, and forced: why the date is closed
    anyway (the reason, or close.at_limit), else empty.
    """

    template_fields: Sequence[str] = ("date", "reason")

    def __init__(self, *, config: str, date: str, reason: str = "", **kwargs: Any) -> None:
        super().__init__(mode="reschedule", timeout=_DAYS * 86400, **kwargs)
        self.config = config
        self.date = date
        self.reason = reason

    def poke(self, context: Context) -> PokeReturnValue:
        """Look once. Errors: AirflowFailException for a wrong file or date."""
        from clickjoin.config import load
        from clickjoin.dates.readiness import by_hand, readiness
        from clickjoin.model.errors import ConfigError
        from clickjoin.model.span import parse

        try:
            pipeline, day = load(self.config), parse(self.date)
        except ConfigError as error:
            raise AirflowFailException(str(error)) from error
        found = readiness(pipeline, day)
        if not found["ready"]:
            self.log.info("%s is not complete: %s", day, found["why"])
        forces = found["late"] and not found["ready"] and pipeline.close.at_limit == "close"
        found["forced"] = by_hand(self.reason) if self.reason else "closed at its limit" if forces else ""
        return PokeReturnValue(is_done=found["ready"] or found["late"] or bool(self.reason), xcom_value=found)


@task
def orders(dates: Mapping[str, Any], action: str, run: str) -> list[dict[str, Any]]:
    """One set of arguments a date, for `closing` to be mapped over."""
    return [{"date": date, "action": action, "run": run} for date in dates["days"]]


def closing(pipeline: PipelineFile, task_id: str, **more: Any) -> dict[str, Any]:
    """What every task that works through a date is made with."""
    shared = {"outlets": [pipeline.dates], "pool": POOL, "max_active_tis_per_dag": None}
    return defaults.task("close_day", pipeline, task_id=task_id, **shared, **more)


def each(pipeline: PipelineFile, dates: Any, action: str) -> Any:
    """A task for each of the dates that an earlier task names in its XCom's `days`."""
    shared = closing(pipeline, "date")
    del shared["arguments"]
    return ClickjoinOperator.partial(**shared).expand(arguments=orders(dates, action, "{{ run_id }}"))
