"""A backfill small enough to watch: closes the dates of its form in table `dates`, without Spark."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, Param, get_current_context, task

from clickjoin_airflow import pipelines

FORM = {
    "from": Param(None, type="string", format="date"),
    "to": Param(None, type="string", format="date"),
    "mode": Param("fill", enum=["fill", "rebuild"]),
    "dry_run": Param(False, type="boolean"),
}

for pipeline in pipelines.find(Path(__file__).with_name("pipelines")).good:
    with DAG(
        f"clickjoin_backfill__{pipeline.name}", schedule=None, start_date=datetime(2025, 1, 1, tzinfo=UTC), params=FORM
    ):

        @task
        def backfill(tables: str) -> int:
            """Write a row for each date."""
            from clickjoin.lake import SmallTables

            form = get_current_context()["params"]
            day, last = (date.fromisoformat(form[name]) for name in ("from", "to"))
            rows = []
            while day <= last:
                rows.append({"date": day, "at": datetime.now(UTC), "action": form["mode"], "state": "closed",
                             "revision": 2, "faults": 0, "failed": 0, "warned": 0, "run": "main/3"})  # fmt: skip
                day += timedelta(days=1)
            if not form["dry_run"]:
                SmallTables(tables).append("dates", rows)
            return len(rows)

        backfill(pipeline.tables)
