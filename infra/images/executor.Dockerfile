# Spark's master and workers: Spark, and the Python of its executors with PyArrow and NumPy, as in the image of the
# driver, and nothing of clickjoin. Where the driver's Python is, since Spark asks for it by that path.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
FROM clickjoin AS driver

FROM ${PYTHON_IMAGE}
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 clickjoin \
 && install -d -o clickjoin -g clickjoin /opt/clickjoin /scratch \
 && install -d -o clickjoin -g clickjoin -m 700 /run/clickjoin

USER clickjoin
WORKDIR /opt/clickjoin
ARG FROM=/opt/clickjoin/.venv/lib/python3.11/site-packages
RUN python -m venv --without-pip .venv
COPY --from=driver ${FROM}/pyspark .venv/lib/python3.11/site-packages/pyspark
COPY --from=driver ${FROM}/pyarrow .venv/lib/python3.11/site-packages/pyarrow
COPY --from=driver ${FROM}/numpy .venv/lib/python3.11/site-packages/numpy
COPY --from=driver ${FROM}/numpy.libs .venv/lib/python3.11/site-packages/numpy.libs
COPY --chown=clickjoin infra/images/spark-node.sh infra/images/healthy.py infra/images/

ENV PATH=/opt/clickjoin/.venv/bin:$PATH SPARK_HOME=/opt/clickjoin/.venv/lib/python3.11/site-packages/pyspark
ENTRYPOINT ["tini", "-g", "--", "infra/images/spark-node.sh"]
CMD ["worker"]
