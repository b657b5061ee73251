"""The jobs of a pipeline: what each takes, reads and writes (`table`), and what it runs. Airflow is not known here.

Importing the package loads the standard library alone, as DAG files do so every few seconds.
"""
