"""What Airflow loads at its start: it makes the operator's links known."""

from airflow.plugins_manager import AirflowPlugin

from clickjoin_airflow.links import LogLink, TablesLink


class ClickjoinPlugin(AirflowPlugin):
    """clickjoin in Airflow."""

    name = "clickjoin"
    operator_extra_links = [TablesLink(), LogLink()]  # noqa: RUF012 - as in the base class
