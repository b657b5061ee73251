"""Users of two teams, by Airflow's simple log-in: `guest` may read DAGs of pipeline `lost`, and no others."""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager


class TeamAuthManager(SimpleAuthManager):
    """As Airflow's own, but for `guest`."""

    def is_authorized_dag(self, *, method: Any, user: Any, access_entity: Any = None, details: Any = None) -> bool:
        """Whether a user may do this with a DAG."""
        if user.get_name() == "guest" and not (details and (details.id or "").endswith("__lost")):
            return False
        return super().is_authorized_dag(method=method, user=user, access_entity=access_entity, details=details)
