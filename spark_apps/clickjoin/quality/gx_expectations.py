"""What Great Expectations has none of: expectations about claims, accounts, lateness and records' fields.

They are expectations like its own: their results have its form, they can be put into any suite, and anyone who imports
this module can load a project that has them. They work on Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from great_expectations.compatibility import pydantic
from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.expectation import (
    BatchExpectation,
    ColumnAggregateExpectation,
    ColumnMapExpectation,
)
from great_expectations.expectations.metrics.column_aggregate_metric_provider import (
    ColumnAggregateMetricProvider,
    column_aggregate_partial,
)
from great_expectations.expectations.metrics.map_metric_provider import (
    ColumnMapMetricProvider,
    column_condition_partial,
)
from great_expectations.expectations.metrics.metric_provider import metric_value
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider
from pyspark.sql import functions as F

from clickjoin.quality.fields import SAMPLED, Fields, drift, profile

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Values = Mapping[str, Any]


class WithoutFault(ColumnMapMetricProvider):
    """Values of a column that says whether something is wrong with the row's id: false is as it should be."""

    condition_metric_name = "column_values.without_fault"

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, **_: Any) -> Column:
        return ~column


class _OfIds(ColumnMapExpectation):
    """An expectation of asset `ids`, which has a row for each id of the date, with all the places that it is in."""

    map_metric: ClassVar[str | None] = "column_values.without_fault"


class ExpectEveryInputAccountedFor(_OfIds):
    """Expect every accepted id in exactly one of joined, pending, unjoinable, expired, filtered, forgotten.

    An id that a batch under way has claimed is accounted for, too. None is lost, and none is in two places.
    """

    column: str = "unaccounted"


class ExpectEveryIdToBeClaimedOnce(_OfIds):
    """Expect no id with two claims."""

    column: str = "doubled_claim"


class ExpectEveryClaimToHaveItsOutput(_OfIds):
    """Expect an output of every claim."""

    column: str = "claim_without_output"


class ExpectEveryOutputToHaveItsClaim(_OfIds):
    """Expect a claim of every id in a table of outputs."""

    column: str = "output_without_claim"


class ExpectClaimsAndOutputsToAgree(_OfIds):
    """Expect claims to name the batch and the table of their id's row."""

    column: str = "wrong_token"


class ExpectEveryOutputToHaveLanded(_OfIds):
    """Expect the record of every id of the output among those that landed."""

    column: str = "unknown_output"


QUANTILES = (*(share / 100 for share in range(1, 100)), 0.999)


class DelayQuantiles(ColumnAggregateMetricProvider):
    """The QUANTILES of a column, to a thousandth: all of them in one pass, with what else is asked of the batch."""

    metric_name = "column.delay_quantiles"

    @column_aggregate_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, **_: Any) -> Column:
        return F.percentile_approx(column, list(QUANTILES), 1000)


class ExpectDelayToBeAtMost(ColumnAggregateExpectation):
    """Expect a share of the rows (`quantile`, one of QUANTILES) not to be later than `max_value` seconds."""

    column: str = "delay"
    quantile: float = 0.99
    max_value: float | None = None

    metric_dependencies: ClassVar[tuple[str, ...]] = ("column.delay_quantiles",)
    success_keys: ClassVar[tuple[str, ...]] = ("quantile", "max_value")

    @pydantic.validator("quantile")
    def _known(cls, value: float) -> float:
        if value not in QUANTILES:
            raise ValueError("write hundredths, such as 0.95, or 0.999")
        return value

    def _validate(self, metrics: Values, *_: Any, **__: Any) -> dict[str, Any]:
        found = metrics["column.delay_quantiles"]
        return _at_most(found[QUANTILES.index(self.quantile)] if found else None, self.max_value)


class SumsOfColumns(TableMetricProvider):
    """The sums of two columns, over rows that have both."""

    metric_name = "table.sums"
    value_keys = ("part", "whole")

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(cls, metric_value_kwargs: Any, **asked: Any) -> tuple[int, int]:
        part, whole = (f"`{metric_value_kwargs[key]}`" for key in ("part", "whole"))
        both = _rows(**asked).where(f"{part} IS NOT NULL AND {whole} IS NOT NULL")
        found = both.selectExpr(f"sum({part})", f"sum({whole})").collect()[0]
        return int(found[0] or 0), int(found[1] or 0)


class ExpectShareToBeAtMost(BatchExpectation):
    """Expect the sum of column `part` to be at most a share (`max_value`) of that of column `whole`."""

    part: str
    whole: str
    max_value: float | None = None

    metric_dependencies: ClassVar[tuple[str, ...]] = ("table.sums",)
    success_keys: ClassVar[tuple[str, ...]] = ("part", "whole", "max_value")

    def _validate(self, metrics: Values, *_: Any, **__: Any) -> dict[str, Any]:
        part, whole = metrics["table.sums"]
        return _at_most(part / whole if whole else None, self.max_value)


class FieldsOfRecords(TableMetricProvider):
    """Which fields the batch's records have, by JSON type: from column `sampled_record`."""

    metric_name = "table.record_fields"

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(cls, **asked: Any) -> Fields:
        known = getattr(asked["execution_engine"], "profiled", None)
        if known and not asked["metric_domain_kwargs"].get("row_condition"):
            return cast("Fields", known())
        return profile(_rows(**asked).select(SAMPLED))


class ColumnKinds(TableMetricProvider):
    """The batch's columns with their Spark SQL types."""

    metric_name = "table.column_kinds"

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(cls, **asked: Any) -> Fields:
        return Fields(1, {name: {kind.upper(): 1} for name, kind in _rows(**asked).dtypes})


class _Kept(BatchExpectation):
    """`before`: what there was, with types; `ours`: names that are no business of this expectation."""

    before: dict[str, str] = pydantic.Field(default_factory=dict)
    ours: list[str] = pydantic.Field(default_factory=list)

    success_keys: ClassVar[tuple[str, ...]] = ("before", "ours")
    new: ClassVar[bool] = False

    def _validate(self, metrics: Values, *_: Any, **__: Any) -> dict[str, Any]:
        now: Fields = metrics[self.metric_dependencies[0]]
        now = Fields(now.records, {name: kinds for name, kinds in now.counts.items() if name not in self.ours})
        schema, (lost, new) = now.schema(), drift(self.before, now)
        found = (new if self.new else lost) if self.before and schema else []
        said = {"schema": schema, "types": now.types(), "found": found}
        return {"success": not found, "result": {"observed_value": len(found) if schema else None, "details": said}}


class ExpectRecordFieldsToBeKept(_Kept):
    """Expect every field of `before` in the records, with its JSON type; what few records have does not count."""

    metric_dependencies: ClassVar[tuple[str, ...]] = ("table.record_fields",)


class ExpectNoNewRecordFields(ExpectRecordFieldsToBeKept):
    """Expect no field in the records that is not in `before`."""

    new: ClassVar[bool] = True


class ExpectColumnsToBeKept(_Kept):
    """Expect every column of `before`, with its type."""

    metric_dependencies: ClassVar[tuple[str, ...]] = ("table.column_kinds",)


class ExpectNoNewColumns(ExpectColumnsToBeKept):
    """Expect no column that is not in `before`."""

    new: ClassVar[bool] = True


class ExpectFieldNullRateToBeAtMost(BatchExpectation):
    """Expect at most a share (`max_value`) of the records without a value in one of their fields."""

    field: str
    max_value: float | None = None

    metric_dependencies: ClassVar[tuple[str, ...]] = ("table.record_fields",)
    success_keys: ClassVar[tuple[str, ...]] = ("field", "max_value")

    def _validate(self, metrics: Values, *_: Any, **__: Any) -> dict[str, Any]:
        found: Fields = metrics["table.record_fields"]
        return _at_most(1 - found.share(self.field) if found.records else None, self.max_value)


def _at_most(value: float | None, most: float | None) -> dict[str, Any]:
    return {"success": value is None or most is None or value <= most, "result": {"observed_value": value}}


def _rows(execution_engine: Any, metric_domain_kwargs: Any, **_: Any) -> DataFrame:
    found = execution_engine.get_compute_domain(metric_domain_kwargs, domain_type=MetricDomainTypes.TABLE)
    return cast("DataFrame", found[0])
