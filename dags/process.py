"""DAGs `clickjoin_process__<pipeline>` of the files in `pipelines/`, as `clickjoin_airflow.dags` makes them."""

from pathlib import Path

from clickjoin_airflow import dags_for

globals().update(dags_for(Path(__file__).with_name("pipelines"), "process"))
