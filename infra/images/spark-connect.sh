#!/bin/bash
# The server that `infra/stack/spark.py` starts on a laptop, started in a container, behind TLS. Ends when either ends.
set -eu
export PYSPARK_PYTHON=/opt/clickjoin/.venv/bin/python PYTHONPATH=/opt/clickjoin/spark_apps
cd /scratch
haproxy -f /opt/clickjoin/infra/images/haproxy.cfg &
spark-submit \
  --class org.apache.spark.sql.connect.service.SparkConnectServer \
  --master 'local[*]' --name clickjoin --driver-memory "${CLICKJOIN_DRIVER_MEMORY:-4g}" \
  --properties-file /opt/clickjoin/infra/spark/spark-defaults.conf \
  --jars "$(ls /opt/clickjoin/.jars/*.jar | paste -sd,)" \
  --conf spark.connect.grpc.binding.port=15002 \
  --conf spark.local.dir=/scratch --conf spark.sql.warehouse.dir=/scratch/warehouse \
  spark-internal &
wait -n
exit 1
