"""Which tables a task reads and writes, for OpenLineage. Its provider calls this where it is installed and set up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

# By app: tables that it reads, and tables that it writes.
_TABLES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "join": (
        ("primary", "foreign", "registry"),
        ("joined", "registry", "pending", "filtered", "expired", "quarantine"),
    ),
    "retry": (("pending", "primary", "registry"), ("joined", "registry", "pending", "unjoinable")),
    "redrive": (("unjoinable",), ("pending",)),
    "gc": (("registry", "pending"), ("registry", "boundary")),
    "reshard": (("timeline",), ("timeline",)),
    "verify": (("foreign", "joined", "registry"), ("verification",)),
    "close_day": (("foreign", "joined", "registry"), ("dates", "quality")),
    "backfill": (("foreign", "primary"), ("joined", "dates", "quality")),
}


def place(tables: str, name: str) -> tuple[str, str]:
    """Namespace and name of a table, as OpenLineage names files: `file` and a path, or `s3://bucket` and a key."""
    if "://" not in tables or tables.startswith("file://"):
        return "file", str(PurePosixPath(tables.removeprefix("file://"), name))
    parts = urlsplit(tables)
    return f"{parts.scheme}://{parts.netloc}", str(PurePosixPath(parts.path.lstrip("/"), name))


def lineage(app: str, tables: str, summary: Mapping[str, Any]) -> OperatorLineage[Any, Any]:
    """The run's datasets; `joined` with the rows that it was given, once that is known."""
    from airflow.providers.common.compat.openlineage.facet import Dataset, OutputDataset
    from airflow.providers.openlineage.extractors import OperatorLineage

    reads, writes = _TABLES.get(app, ((), ()))
    return OperatorLineage(
        inputs=[Dataset(*place(tables, name)) for name in reads],
        outputs=[OutputDataset(*place(tables, name), outputFacets=_rows(name, summary)) for name in writes],
    )


def _rows(name: str, summary: Mapping[str, Any]) -> dict[str, Any]:
    from openlineage.client.facet_v2 import output_statistics_output_dataset as statistics

    if name != "joined" or "joined" not in summary:
        return {}
    return {"outputStatistics": statistics.OutputStatisticsOutputDatasetFacet(rowCount=int(summary["joined"]))}
