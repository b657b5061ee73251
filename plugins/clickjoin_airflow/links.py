"""Buttons on a task's page. Airflow's UI shows links of http(s) and its own pages only, so a folder needs a detour."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink
from airflow.sdk.configuration import conf

from clickjoin.model.places import output_of

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class TablesLink(BaseOperatorLink):
    """The tables, if they have a web address; else asset `joined`, which names their folder and lists additions."""

    name = "Tables"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Address of the pipeline's tables."""
        tables = str(getattr(operator, "tables", None) or "")
        if not tables:
            return f"{conf.get('api', 'base_url', fallback='/').rstrip('/')}/assets"
        if tables.startswith(("http://", "https://")):
            return tables
        base = conf.get("api", "base_url", fallback="/").rstrip("/")
        return f"{base}/assets?name_pattern={quote(f'{PurePosixPath(tables).name}/{output_of(tables)}', safe='')}"


class LogLink(BaseOperatorLink):
    """The task's log."""

    name = "Log"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Address of the log; Airflow gives the running task itself as the key."""
        return str(getattr(ti_key, "log_url", ""))
