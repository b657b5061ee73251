# Airflow beside Spark's own environment, so that batch work may start Spark in the task; plus PostgreSQL's drivers.
FROM clickjoin-spark

COPY --chown=clickjoin infra/images/postgres.lock infra/images/postgres.lock
RUN pip install --no-cache-dir --require-hashes --no-deps -r infra/images/postgres.lock
CMD ["airflow", "version"]
