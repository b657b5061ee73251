"""What a run's conf may name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, Param
from airflow.sdk.exceptions import AirflowFailException

from clickjoin_airflow.conf import require_known


def context(conf: dict[str, Any] | None) -> Any:
    """What a task is given of a run."""
    return {"dag": DAG("gc", params={"dry_run": Param(False)}), "dag_run": SimpleNamespace(conf=conf)}


@pytest.mark.parametrize("conf", [None, {}, {"dry_run": True}])
def test_what_the_form_has_is_taken(conf: dict[str, Any] | None) -> None:
    require_known(context(conf))


def test_what_it_lacks_is_refused_by_name() -> None:
    with pytest.raises(AirflowFailException, match=r"names dry_rn, .* nothing was done; it takes dry_run\."):
        require_known(context({"dry_rn": True, "dry_run": True}))
