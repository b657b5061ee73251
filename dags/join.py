"""DAGs `clickjoin_join__<pipeline>` and `clickjoin_join_group__<group>` of the files in `pipelines/`.

As `clickjoin_airflow.dags` makes them.
"""

from pathlib import Path

from clickjoin_airflow import dags_for

globals().update(dags_for(Path(__file__).with_name("pipelines"), "join"))
