"""The operator of a task that joins several pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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
        """With the names of those that have worked before, as the newest run that has ended says."""
        run = super()._run(context)
        before = context["ti"].xcom_pull(task_ids=self.task_id, include_prior_dates=True) or {}
        return JobRun(
            run.job, run.config, run.replica, run.lease, run.tag,
            {**run.arguments, "known": " ".join(before.get("known", ()))},
        )  # fmt: skip

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
