"""Airflow's database, SQLite, when somebody else holds it: the API answers all the same, and what was asked is done."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing

import pytest

from stack import web
from tests.airflow.real.live import Live

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_locked_database_does_not_stop_the_api(live: Live) -> None:
    dag, stack = "clickjoin_gc__clicks", live.stack
    paused = threading.Thread(target=live.unpause, args=(dag,), kwargs={"paused": True})
    with closing(sqlite3.connect(stack.home.folder / "airflow/airflow.db", timeout=60, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        paused.start()
        time.sleep(1)  # until it waits: what it logs is committed where all requests pass
        assert web.request(f"{stack.airflow_url}/api/v2/version", timeout=50)["version"]
        assert paused.is_alive()
        other.execute("ROLLBACK")
    paused.join(120)
    assert not paused.is_alive()
    assert live.get(f"/dags/{dag}")["is_paused"]
