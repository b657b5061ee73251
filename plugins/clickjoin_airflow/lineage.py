"""Which tables a task reads and writes, for OpenLineage. Its provider calls this where it is installed and set up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from clickjoin.jobs.all_jobs import require_job
from clickjoin.model.places import JOINED, output_of

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage


def place(tables: str, name: str) -> tuple[str, str]:
    """Namespace and name of a table, as OpenLineage names files: `file` and a path, or `s3://bucket` and a key."""
    name = output_of(tables) if name == JOINED else name
    if "://" not in tables or tables.startswith("file://"):
        return "file", str(PurePosixPath(tables.removeprefix("file://"), name))
    parts = urlsplit(tables)
    return f"{parts.scheme}://{parts.netloc}", str(PurePosixPath(parts.path.lstrip("/"), name))


def lineage(
    job: str, tables: str, summary: Mapping[str, Any], upstreams: Sequence[str] = ()
) -> OperatorLineage[Any, Any]:
    """The run's datasets; `joined` with the rows that it was given, once that is known.

    `upstreams`: URIs of outputs of other pipelines that it reads.
    """
    return lineage_of(job, [(tables, summary)], upstreams)


def lineage_of(
    job: str, held: Sequence[tuple[str, Mapping[str, Any]]], upstreams: Sequence[str]
) -> OperatorLineage[Any, Any]:
    """The same for a job on several pipelines. `held`: where the tables of each are, and what it did."""
    from airflow.providers.common.compat.openlineage.facet import Dataset, OutputDataset
    from airflow.providers.openlineage.extractors import OperatorLineage

    known = require_job(job)
    return OperatorLineage(
        inputs=[
            *(Dataset(*place(tables, name)) for tables, _ in held for name in known.reads),
            *(Dataset(*place(*uri.rsplit("/", 1))) for uri in upstreams),
        ],
        outputs=[
            OutputDataset(*place(tables, name), outputFacets=_rows(name, summary))
            for tables, summary in held
            for name in known.writes
        ],
    )


def _rows(name: str, summary: Mapping[str, Any]) -> dict[str, Any]:
    from openlineage.client.facet_v2 import output_statistics_output_dataset as statistics

    if name != "joined" or "joined" not in summary:
        return {}
    return {"outputStatistics": statistics.OutputStatisticsOutputDatasetFacet(rowCount=int(summary["joined"]))}
