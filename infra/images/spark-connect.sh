#!/bin/bash
# The server that `infra/stack/spark.py` starts on a laptop, started in a container, behind TLS. Ends when either ends.
# CLICKJOIN_SPARK_MASTER: a cluster, whose settings CLICKJOIN_SPARK_PROPERTIES names; else it works by itself.
set -eu
here=/opt/clickjoin
export PYSPARK_PYTHON=$here/.venv/bin/python PYTHONPATH=$here/spark_apps
# Of several settings of one name Spark takes the last. The file is private, as a secret may be in it.
settings=/run/clickjoin/spark.conf
(
  umask 077
  cd $here
  cat infra/spark/spark-defaults.conf
  [ -z "${CLICKJOIN_SPARK_PROPERTIES:-}" ] || cat "$CLICKJOIN_SPARK_PROPERTIES"
  [ ! -f /run/clickjoin/cluster-secret.conf ] || cat /run/clickjoin/cluster-secret.conf
  python infra/images/store_settings.py
) > $settings
cd /scratch
haproxy -f $here/infra/images/haproxy.cfg &
spark-submit \
  --class org.apache.spark.sql.connect.service.SparkConnectServer \
  --master "${CLICKJOIN_SPARK_MASTER:-local[*]}" --name clickjoin --driver-memory "${CLICKJOIN_DRIVER_MEMORY:-4g}" \
  --properties-file $settings \
  --jars "$(ls $here/.jars/*.jar $here/.jars/s3/*.jar | paste -sd,)" \
  --conf spark.connect.grpc.binding.port=15002 \
  --conf spark.local.dir=/scratch --conf spark.sql.warehouse.dir=/scratch/warehouse \
  spark-internal &
wait -n
exit 1
