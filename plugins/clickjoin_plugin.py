"""What Airflow loads from a folder of plugins; the wheel `clickjoin-airflow` names the same as an entry point."""

from clickjoin_airflow.plugin import ClickjoinPlugin

__all__ = ["ClickjoinPlugin"]
