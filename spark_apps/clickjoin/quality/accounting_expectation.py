"""An expectation of our own: every input is accounted for. It works on pandas and on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.expectation import BatchExpectation
from great_expectations.expectations.metrics.metric_provider import metric_value
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider

if TYPE_CHECKING:
    from great_expectations.execution_engine.execution_engine import ExecutionEngine

_METRIC = "table.inputs_accounted_for"
PARTS = (
    "accepted",
    "joined",
    "pending",
    "unjoinable",
    "expired",
    "filtered",
    "forgotten",
    "in_flight",
    "nowhere",
    "twice",
)


class InputsAccountedFor(TableMetricProvider):
    """The sums of a frame's columns PARTS: each row says of some accepted ids how many of them are where."""

    metric_name = _METRIC

    @metric_value(engine=PandasExecutionEngine)
    def _pandas(
        cls,
        execution_engine: PandasExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any],
    ) -> dict[str, int]:
        frame, _, _ = execution_engine.get_compute_domain(metric_domain_kwargs, domain_type=MetricDomainTypes.TABLE)
        return {name: int(frame[name].sum()) for name in PARTS}

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(
        cls,
        execution_engine: SparkDFExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any],
    ) -> dict[str, int]:
        frame, _, _ = execution_engine.get_compute_domain(metric_domain_kwargs, domain_type=MetricDomainTypes.TABLE)
        row = frame.selectExpr(*(f"coalesce(sum({name}), 0) AS {name}" for name in PARTS)).collect()[0]
        return {name: int(row[name]) for name in PARTS}


class ExpectEveryInputAccountedFor(BatchExpectation):
    """Expect every accepted id in exactly one of joined, pending, unjoinable, expired, filtered, forgotten.

    Also passes those that a batch under way has claimed (`in_flight`). The batch has the columns PARTS.
    """

    metric_dependencies: ClassVar[tuple[str, ...]] = (_METRIC,)

    def _validate(
        self,
        metrics: Mapping[str, Any],
        runtime_configuration: Mapping[str, Any] | None = None,
        execution_engine: ExecutionEngine[Any] | None = None,
    ) -> dict[str, Any]:
        found = metrics[_METRIC]
        where = [f"{found[name]:,} {name.replace('_', ' ')}" for name in PARTS[1:]]
        spread = sum(found[name] for name in PARTS[1:8])
        whole = found["nowhere"] == 0 and found["twice"] == 0 and spread == found["accepted"]
        return {"success": whole, "result": {"observed_value": f"{found['accepted']:,} accepted: {', '.join(where)}"}}
