"""The DAGs of a pipeline, one module each; `make` builds it, and the module's text is what Airflow shows of it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from clickjoin.model.dags import DAGS
from clickjoin_airflow.dags import join_group
from clickjoin_airflow.defaults import placeholder
from clickjoin_airflow.pipelines import PipelineFileError, find, folder_of

if TYPE_CHECKING:
    from airflow.sdk import DAG


def dags_for(folder: Path | str, *names: str) -> dict[str, DAG]:
    """All DAGs of all pipelines' files in a folder, by id, for a DAG file's `globals()`; `names`: only these, as join.

    CLICKJOIN_PIPELINES goes before `folder`, since the status page goes by it too. A file that no DAG can be built from
    has one in place of its join that says why. Errors: PipelineFileError where there is no such folder, or no such DAG.
    """
    place = folder_of(Path(folder))
    if not place.is_dir():
        raise PipelineFileError(f"{place}: is no folder; name the one that holds the pipelines' files")
    if unknown := [name for name in names if name not in DAGS]:
        raise PipelineFileError(f"{unknown[0]!r} is no DAG; choose of {', '.join(DAGS)}")
    found = find(place)
    dags: list[DAG] = []
    for name in names or DAGS:
        make = import_module(f"{__name__}.{name}").make
        dags += [make(pipeline) for pipeline in found.with_dag(name)]
        if name == "join":
            dags += [placeholder(name, file) for file in found.broken]
            dags += [join_group.make(group, files) for group, files in found.groups().items()]
    return {dag.dag_id: dag for dag in dags}
