"""The only bridge between Airflow and clickjoin. Importing it must stay cheap: DAG files do so every few seconds."""

from clickjoin_airflow.dags import dags_for
from clickjoin_airflow.operator import ClickjoinOperator
from clickjoin_airflow.pipelines import require_readable

__all__ = ["ClickjoinOperator", "dags_for", "require_readable"]
