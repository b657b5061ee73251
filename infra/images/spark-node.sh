#!/bin/bash
# A part of Spark that runs no code of ours but what a plan brings: `spark-node.sh master|worker`, and `executor`, as
# Spark's Kubernetes master starts it. CLICKJOIN_SPARK_SECRET: what all parts and the driver know; others are refused.
set -eu
umask 077
export SPARK_CONF_DIR=/run/clickjoin/spark SPARK_LOCAL_DIRS="${SPARK_LOCAL_DIRS:-/scratch}"
export SPARK_DAEMON_MEMORY="${SPARK_DAEMON_MEMORY:-256m}"
mkdir -p "$SPARK_CONF_DIR"
if [ -n "${CLICKJOIN_SPARK_SECRET:-}" ]; then
  printf 'spark.authenticate true\nspark.authenticate.secret %s\n' "$CLICKJOIN_SPARK_SECRET" > "$SPARK_CONF_DIR/spark-defaults.conf"
fi
unset CLICKJOIN_SPARK_SECRET
deploy=org.apache.spark.deploy
case "${1:-}" in
  master)
    exec "$SPARK_HOME/bin/spark-class" $deploy.master.Master \
      --host "$CLICKJOIN_SPARK_HOST" --port 7077 --webui-port 8080 ;;
  worker)
    exec "$SPARK_HOME/bin/spark-class" $deploy.worker.Worker --webui-port 8081 --work-dir /scratch/work \
      --cores "$CLICKJOIN_WORKER_CORES" --memory "$CLICKJOIN_WORKER_MEMORY" "$CLICKJOIN_SPARK_MASTER" ;;
  executor)
    mapfile -t options < <(env | sed -n 's/^SPARK_JAVA_OPT_[0-9]*=//p')
    exec java "${options[@]}" -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" \
      -cp "${SPARK_CLASSPATH:-}:$SPARK_HOME/jars/*:${SPARK_DIST_CLASSPATH:-}" \
      org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
      --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
      --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
      --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME" ;;
  *) echo "spark-node.sh: master, worker or executor, not ${1:-nothing}" >&2; exit 2 ;;
esac
