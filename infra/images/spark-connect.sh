#!/bin/bash
# The server that `infra/stack/spark.py` starts on a laptop, started in a container, behind TLS. Ends when either ends.
# CLICKJOIN_SPARK_MASTER=spark://…: on that cluster, whose settings are read from spark-defaults.conf in SPARK_CONF_DIR.
set -eu
: "${PYSPARK_PYTHON:=/opt/clickjoin/.venv/bin/python}" "${CLICKJOIN_SPARK_MASTER:=local[*]}"
export PYSPARK_PYTHON PYTHONPATH=/opt/clickjoin/spark_apps
defaults=/opt/clickjoin/infra/spark/spark-defaults.conf cluster=()
case "$CLICKJOIN_SPARK_MASTER" in
  local*) ;;
  *)  # The driver's address and the secret are the cluster's there.
    grep -v -e '^spark.authenticate ' -e '^spark.driver.' "$defaults" > /scratch/cluster.conf
    defaults=/scratch/cluster.conf cluster=(--load-spark-defaults) ;;
esac
cd /scratch
haproxy -f /opt/clickjoin/infra/images/haproxy.cfg &
spark-submit \
  --class org.apache.spark.sql.connect.service.SparkConnectServer \
  --master "$CLICKJOIN_SPARK_MASTER" --name clickjoin --driver-memory "${CLICKJOIN_DRIVER_MEMORY:-4g}" \
  --properties-file "$defaults" "${cluster[@]}" \
  --jars "$(ls /opt/clickjoin/.jars/*.jar | paste -sd,)" \
  --conf spark.connect.grpc.binding.port=15002 \
  --conf spark.local.dir=/scratch --conf spark.sql.warehouse.dir=/scratch/warehouse \
  spark-internal &
wait -n
exit 1
