"""A pipeline's tables as a data source of Great Expectations: an asset a suite, a batch a date.

Who imports this module can open a pipeline's project (`<lake>/<pipeline>/_quality/gx`), with its own expectations.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")

from great_expectations.compatibility import pydantic
from great_expectations.core import IDDict
from great_expectations.core.batch import LegacyBatchDefinition
from great_expectations.core.batch_spec import RuntimeDataBatchSpec
from great_expectations.datasource.fluent import BatchRequest
from great_expectations.datasource.fluent.interfaces import Batch, DataAsset
from great_expectations.datasource.fluent.spark_datasource import _SparkDatasource
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.validator.metric_configuration import MetricConfiguration

from clickjoin.config.quality import SIDES
from clickjoin.model.errors import ConfigError
from clickjoin.quality import gx_expectations  # noqa: F401, the project's expectations are registered by it
from clickjoin.quality.frames import RUNNING, TABLES, Frames

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from clickjoin.quality.fields import Fields

SOURCE, BATCH, DATE = "clickjoin", "date", "date"


class Engine(SparkDFExecutionEngine):
    """Spark, with fewer jobs: what did not pass is read only where something did not."""

    profiled: Callable[[], Fields] | None = None

    def __init__(self, *args: Any, persist: bool = False, **more: Any) -> None:
        super().__init__(*args, persist=False, **more)  # each asset keeps its own rows, and lets them go

    def resolve_metrics(self, metrics_to_resolve: Any, metrics: Any = None, runtime_configuration: Any = None) -> Any:
        """As its base does. Rows that did not pass wait until their number is known; where it is 0 there are none."""
        known, wanted = dict(metrics or {}), {one.id for one in metrics_to_resolve}
        found: dict[Any, Any] = {}
        now = []
        for one in metrics_to_resolve:
            counts = _counts_of(one)
            if any(count.id in wanted for count in counts):
                continue  # it is asked for again once its number is there
            if counts and known.get(counts[0].id) == 0:
                found[one.id] = []
            else:
                now.append(one)
        return found | super().resolve_metrics(now, metrics, runtime_configuration) if now else found or known


def _counts_of(one: MetricConfiguration) -> list[MetricConfiguration]:
    """The metric that counts what another one lists, and what it is made from; none of one that lists nothing."""
    base, dot, what = one.metric_name.rpartition(".")
    if not dot or what not in ("unexpected_values", "unexpected_index_list"):
        return []
    values = {name: value for name, value in one.metric_value_kwargs.items() if name != "result_format"}
    names = (f"{base}.unexpected_count{part}" for part in ("", ".aggregate_fn"))
    return [MetricConfiguration(name, one.metric_domain_kwargs, values) for name in names]


class TableOfDates(DataAsset):  # type: ignore[type-arg]
    """The rows of a date: `batch_parameters={"date": "2026-03-01"}` (UTC, of the events' own time)."""

    type: Literal["table_of_dates"] = "table_of_dates"

    def test_connection(self) -> None:
        """There is nothing to test before a date is asked for."""

    def get_batch_parameters_keys(self, partitioner: Any = None) -> tuple[str, ...]:
        """What names a batch."""
        return (DATE,)

    def build_batch_request(self, options: Any = None, batch_slice: Any = None, partitioner: Any = None) -> Any:
        """The request of a date's rows. Errors: ConfigError where the date is missing or none."""
        _day(options)
        return BatchRequest(datasource_name=self.datasource.name, data_asset_name=self.name, options=dict(options))

    def get_batch_identifiers_list(self, batch_request: Any) -> list[dict[str, Any]]:
        """The one batch of a request."""
        return [IDDict(batch_request.options)]

    def get_batch(self, batch_request: Any) -> Batch:
        """The rows of the date, as Spark has them."""
        source = cast("ClickjoinSource", self.datasource)
        frames = source.frames(_day(batch_request.options))
        spec = RuntimeDataBatchSpec(batch_data=frames.frame(self.name), data_asset_name=self.name)  # the pages name it
        engine = cast("Engine", source.get_execution_engine())
        engine.profiled = partial(frames.profiled, self.name)
        data, markers = engine.get_batch_data_and_markers(batch_spec=spec)
        definition = LegacyBatchDefinition(source.name, "fluent", self.name, IDDict(batch_request.options))
        return Batch(
            datasource=self.datasource, data_asset=self, batch_request=batch_request, data=data,
            metadata=dict(batch_request.options), batch_markers=markers, batch_spec=spec, batch_definition=definition,
        )  # fmt: skip


class ClickjoinSource(_SparkDatasource):
    """The tables of a pipeline. `root`: their folder; `pipeline_file`: the pipeline's YAML file, for who has no run."""

    asset_types: ClassVar[list[Any]] = [TableOfDates]

    type: Literal["clickjoin"] = "clickjoin"
    root: str
    pipeline_file: str = ""
    assets: list[TableOfDates] = pydantic.Field(default_factory=list)

    def test_connection(self, test_assets: bool = True) -> None:
        """There is nothing to test before a date is asked for."""

    @property
    def execution_engine_type(self) -> Any:
        """What computes its metrics."""
        return Engine

    def frames(self, day: date) -> Frames:
        """The assets of a date: of the run under way in this process, else made from the pipeline's file.

        Errors: ConfigError where that cannot be read.
        """
        if (self.root, day) not in RUNNING:
            for held in RUNNING.values():
                held.release()  # one date at a time: its rows are kept in memory
            RUNNING.clear()
            RUNNING[self.root, day] = _opened(self.pipeline_file, day)
        return RUNNING[self.root, day]

    @classmethod
    def _get_exec_engine_excludes(cls) -> set[str]:
        return {*super()._get_exec_engine_excludes(), "root", "pipeline_file"}


def _opened(file: str, day: date) -> Frames:
    from clickjoin.config import load
    from clickjoin.engines.choose import open_lake
    from clickjoin.lake.requirements import require_lake
    from clickjoin.quality import history

    place = os.environ.get("CLICKJOIN_PIPELINE") or file
    if not place:
        raise ConfigError(
            "the project does not know its pipeline's file",
            remedy="Set CLICKJOIN_PIPELINE to its path, or write it as `pipeline_file` in great_expectations.yml",
        )
    pipeline = load(place)
    require_lake(pipeline.root)
    lake = open_lake(lambda: _session(pipeline.needs_s3), pipeline)
    past = history.read(lake.delta, day, pipeline.quality.history_days, 1)
    return Frames(lake, pipeline, day, datetime.now(UTC), past, dict.fromkeys((*TABLES, *SIDES)))


def _session(s3: bool) -> SparkSession:
    """The session that this process has, whether it is on a Connect server, or one of its own."""
    from pyspark.sql import SparkSession

    from clickjoin.spark.session import configured, in_process

    held = SparkSession.getActiveSession()
    return in_process(s3=s3) if held is None else configured(held)


def _day(options: Any) -> date:
    given = (options or {}).get(DATE)
    try:
        return date.fromisoformat(str(given))
    except ValueError as error:
        raise ConfigError(
            f"batch parameter {DATE}: {given!r} is no date", remedy='Give batch_parameters={"date": "2026-03-01"}'
        ) from error
