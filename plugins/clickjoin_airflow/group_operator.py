"""The operator of a task that joins several pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, DownstreamTasksSkipped

from clickjoin_airflow import metrics
from clickjoin_airflow.job import JobRun
from clickjoin_airflow.lineage import lineage_of
from clickjoin_airflow.operator import ClickjoinOperator

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context


class GroupOperator(ClickjoinOperator):
    """Runs job `join_group` on the files in `config`. `members`: where the tables of each pipeline are, by its name."""

    def __init__(self, *, members: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.members = dict(members)

    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any]:
        """The tables of all of them."""
        return lineage_of(self.job, [(tables, {}) for tables in self.members.values()], self._upstreams())

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        """The same, with the rows that were joined."""
        each = self._summary.get("pipelines", {})
        held = [(tables, each.get(name, {})) for name, tables in self.members.items()]
        return lineage_of(self.job, held, self._upstreams())

    def _run(self, context: Context) -> JobRun:
        """With the names of those that have worked before, as the newest run that has ended says.

        All, where some run has succeeded and what it returned is gone: no lake must be made for want of that.
        """
        run = super()._run(context)
        # Of one index: else what all runs of the past have returned.
        before = context["ti"].xcom_pull(task_ids=self.task_id, map_indexes=-1, include_prior_dates=True)
        everybody = list(self.members) if context.get("prev_start_date_success") else []
        known = before["known"] if before else everybody
        return replace(run, arguments={**run.arguments, "known": " ".join(known)})

    def _returned(self, ti: Any, summary: dict[str, Any]) -> dict[str, Any]:
        """A task that fails tells nobody of what it has joined: that some failed is for the next task to say."""
        if not summary["ok"]:
            return summary
        ti.xcom_push(key="return_value", value=summary)
        raise DownstreamTasksSkipped(tasks=sorted(self.downstream_task_ids))

    def _emit(self, summary: dict[str, Any]) -> None:
        for name, found in summary["pipelines"].items():
            metrics.emit("join", name, self.replica, found)

    def _announce(self, context: Context, summary: dict[str, Any]) -> None:
        """Tell who waits for the output of each that was added to."""
        names = dict(zip(self.members, self.outlets, strict=True))
        each = {name: found for name, found in summary["pipelines"].items() if found["joined"]}
        self.outlets = [names[name] for name in each]
        for name, found in each.items():
            counts = {key: value for key, value in found.items() if isinstance(value, int | float)}
            context["outlet_events"][names[name]].extra.update(counts | {"replica": self.replica})


class FailedPipelinesOperator(BaseOperator):
    """Fails with the pipelines that a group's task could not go on with, and why. `of`: that task's id."""

    def __init__(self, *, of: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.of = of

    def execute(self, context: Context) -> None:
        """Say it. Errors: AirflowFailException."""
        raise AirflowFailException(context["ti"].xcom_pull(task_ids=self.of, map_indexes=-1)["verdict"])
