#!/bin/bash
# A part of Spark that runs no code of ours but what a plan brings: `spark-node.sh master|worker`, and `executor`, as
# Spark's Kubernetes master starts it. CLICKJOIN_SPARK_SECRET: what all parts and the driver know; others are refused.
set -eu
umask 077
settings=/run/clickjoin/spark
export SPARK_LOCAL_DIRS="${SPARK_LOCAL_DIRS:-/scratch}" SPARK_DAEMON_MEMORY="${SPARK_DAEMON_MEMORY:-256m}"
if [ "${1:-}" != executor ]; then
  export SPARK_CONF_DIR=$settings
  mkdir -p $settings
  if [ -n "${CLICKJOIN_SPARK_SECRET:-}" ]; then
    printf 'spark.authenticate true\nspark.authenticate.secret %s\n' "$CLICKJOIN_SPARK_SECRET" > $settings/spark-defaults.conf
  fi
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
    # Spark copies JARs into the working folder, and the image's own is on a root where nothing can be written.
    mkdir -p "${SPARK_LOCAL_DIRS%%,*}"
    cd "${SPARK_LOCAL_DIRS%%,*}"
    # Spark numbers the JVM's options from 0; one may hold blanks or line ends.
    options=()
    for ((i = 0; ; i++)); do
      name=SPARK_JAVA_OPT_$i
      [ -n "${!name+set}" ] || break
      options+=("${!name}")
    done
    # What `spark.authenticate.secret.file` is to Spark's driver: executors read that setting only after they were let in.
    if [ -n "${CLICKJOIN_SPARK_SECRET_FILE:-}" ]; then
      _SPARK_AUTH_SECRET=$(base64 -w 0 "$CLICKJOIN_SPARK_SECRET_FILE")
      export _SPARK_AUTH_SECRET
    fi
    # Settings that Spark mounts come first, then what the user names, Spark itself, what is in the image besides.
    path=
    for part in "${SPARK_CONF_DIR:-}" "${HADOOP_CONF_DIR:-}" "${SPARK_CLASSPATH:-}" "$SPARK_HOME/jars/*" \
                "${SPARK_EXTRA_CLASSPATH:-}" "${SPARK_DIST_CLASSPATH:-}"; do
      [ -z "$part" ] || path=$path${path:+:}$part
    done
    exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" "${options[@]}" -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" \
      -cp "$path" \
      org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
      --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
      --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
      --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME" ;;
  *) echo "spark-node.sh: master, worker or executor, not ${1:-nothing}" >&2; exit 2 ;;
esac
