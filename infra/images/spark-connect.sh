#!/bin/bash
# The server that `infra/stack/spark.py` starts on a laptop, started in a container, behind TLS. Ends when either ends.
# CLICKJOIN_SPARK_MASTER=spark://…: on that cluster, whose settings are read from spark-defaults.conf in SPARK_CONF_DIR.
set -eu
here=/opt/clickjoin
: "${PYSPARK_PYTHON:=$here/.venv/bin/python}" "${CLICKJOIN_SPARK_MASTER:=local[*]}"
export PYSPARK_PYTHON PYTHONPATH=$here/spark_apps
defaults=$here/infra/spark/spark-defaults.conf settings=/run/clickjoin/spark.conf cluster=()
case "$CLICKJOIN_SPARK_MASTER" in
  local*) cat $defaults > $settings ;;
  *)  # The driver's address and the secret are the cluster's there.
    grep -v -e '^spark.authenticate ' -e '^spark.driver.' $defaults > $settings
    cluster=(--load-spark-defaults) ;;
esac
python $here/infra/images/store_settings.py >> $settings
cd /scratch
haproxy -f $here/infra/images/haproxy.cfg &
spark-submit \
  --class org.apache.spark.sql.connect.service.SparkConnectServer \
  --master "$CLICKJOIN_SPARK_MASTER" --name clickjoin --driver-memory "${CLICKJOIN_DRIVER_MEMORY:-4g}" \
  --properties-file $settings "${cluster[@]}" \
  --jars "$(ls $here/.jars/*.jar $here/.jars/s3/*.jar | paste -sd,)" \
  --conf spark.connect.grpc.binding.port=15002 \
  --conf spark.local.dir=/scratch --conf spark.sql.warehouse.dir=/scratch/warehouse \
  spark-internal &
wait -n
exit 1
