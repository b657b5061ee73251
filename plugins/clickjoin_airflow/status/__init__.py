"""The status page: an app behind Airflow's own log-in and permissions that reads Delta tables without Spark."""
