"""The only bridge between Airflow and clickjoin. Importing it must stay cheap: DAG files do so every few seconds."""

from clickjoin_airflow.operator import ClickjoinOperator

__all__ = ["ClickjoinOperator"]
