# The project's own environment, as `make setup s3` makes it: Airflow's parts, and Spark's driver behind Spark Connect.
# To pin it: docker compose build --build-arg PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:…, of
# `docker buildx imagetools inspect python:3.11-slim-bookworm`.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
FROM ${PYTHON_IMAGE}

RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless haproxy tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 clickjoin \
 && install -d -o clickjoin -g clickjoin /opt/clickjoin /data /logs /scratch \
 && install -d -o clickjoin -g clickjoin -m 700 /run/clickjoin /opt/clickjoin/airflow

USER clickjoin
WORKDIR /opt/clickjoin
COPY --chown=clickjoin infra/bootstrap infra/bootstrap
COPY --chown=clickjoin infra/logstore infra/logstore
COPY --chown=clickjoin infra/*.txt infra/*.lock infra/*.xml infra/
RUN PYTHONPATH=infra python -B -m bootstrap s3 && .venv/bin/python -m uv cache clean

COPY --chown=clickjoin infra infra
COPY --chown=clickjoin spark_apps spark_apps
COPY --chown=clickjoin plugins plugins
COPY --chown=clickjoin dags dags

ENV PATH=/opt/clickjoin/.venv/bin:$PATH GX_ANALYTICS_ENABLED=false
ENTRYPOINT ["tini", "-g", "--", "infra/images/entrypoint.sh"]
CMD ["airflow", "version"]
