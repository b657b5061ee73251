"""What Airflow loads at its start: it makes the operator's links, the status page and a listener known."""

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from clickjoin_airflow import pausing
from clickjoin_airflow.links import LogLink, TablesLink
from clickjoin_airflow.status.mount import APP, FASTAPI_APP, VIEW


class ClickjoinPlugin(AirflowPlugin):
    """clickjoin in Airflow."""

    name = "clickjoin"
    operator_extra_links = [TablesLink(), LogLink()]  # noqa: RUF012 - as in the base class
    fastapi_apps = [FASTAPI_APP]  # noqa: RUF012
    external_views = [VIEW]  # noqa: RUF012
    listeners = [pausing]  # noqa: RUF012

    @classmethod
    def on_load(cls, *args: Any, **kwargs: Any) -> None:
        """Airflow calls this in every process that loads the plugin."""
        APP.warm_up()
