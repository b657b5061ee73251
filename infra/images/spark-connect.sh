#!/bin/sh
# The server that `infra/stack/spark.py` starts on a laptop, started in a container.
set -eu
export PYSPARK_PYTHON=/opt/clickjoin/.venv/bin/python PYTHONPATH=/opt/clickjoin/spark_apps
cd /data
exec spark-submit \
  --class org.apache.spark.sql.connect.service.SparkConnectServer \
  --master 'local[*]' --name clickjoin --driver-memory "${CLICKJOIN_DRIVER_MEMORY:-4g}" \
  --properties-file /opt/clickjoin/infra/spark/spark-defaults.conf \
  --jars "$(ls /opt/clickjoin/.jars/*.jar | paste -sd,)" \
  --conf spark.connect.grpc.binding.port=15002 \
  spark-internal
