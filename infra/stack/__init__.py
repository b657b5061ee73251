"""Run Spark Connect and Airflow on this machine: for `make up`, for the demo and for tests."""

from .stack import Stack

__all__ = ["Stack"]
