"""What Airflow's list of providers says of the wheel `clickjoin-airflow`."""

from __future__ import annotations

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """Airflow reads it by entry point `apache_airflow_provider`, in each of its processes: no imports of weight."""
    from clickjoin import __version__

    return {
        "package-name": "clickjoin-airflow",
        "name": "clickjoin",
        "description": "Joins a foreign event stream to a primary one exactly once, on Spark and Delta.",
        "versions": [__version__],
    }
