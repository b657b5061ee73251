"""What a task did, as metrics of Airflow's own (StatsD, OpenTelemetry): they go wherever its settings send them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from airflow.sdk.configuration import conf
from airflow.sdk.observability import stats

# Added up by whoever collects them: what this run did.
COUNTERS = (
    "batches", "primary_in", "events_in", "joined", "repeats", "wasted", "pending", "unjoinable", "expired",
    "filtered", "quarantined", "passed_over", "conflict_reruns",
)  # fmt: skip
# As it stands when the run ends. `waiting`: events in table `pending`; latency and lag in seconds.
GAUGES = ("latency_p90", "lag_seconds", "backlog_events", "waiting")
_FLUSH_MILLISECONDS = 5_000
_log = logging.getLogger(__name__)


def emit(job: str, pipeline: str, replica: str, summary: Mapping[str, Any]) -> None:
    """Emit a run's summary as `clickjoin.<name>`, tagged with app, pipeline and replica. Never fails the task."""
    # Not `job`: Prometheus has a label of that name for what it scrapes.
    tags = {"app": job, "pipeline": pipeline, "replica": replica}
    try:
        for name in COUNTERS:
            if isinstance(summary.get(name), int):
                stats.incr(f"clickjoin.{name}", count=summary[name], tags=tags)
        for name in GAUGES:
            if isinstance(summary.get(name), int | float):
                stats.gauge(f"clickjoin.{name}", float(summary[name]), tags=tags)
        if conf.getboolean("metrics", "otel_on", fallback=False):
            _flush()
    except Exception:
        _log.warning("the run's metrics could not be emitted", exc_info=True)


def _flush() -> None:
    """Send them now: a task's process may be gone before the exporter's next round."""
    from opentelemetry import metrics

    flush = getattr(metrics.get_meter_provider(), "force_flush", None)
    if flush:
        flush(_FLUSH_MILLISECONDS)
