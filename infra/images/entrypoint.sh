#!/bin/sh
# Secrets come as variables; what wants them in a file gets one that only this container sees.
set -eu
umask 077
home=/run/clickjoin
if [ -n "${CLICKJOIN_TLS_PEM:-}" ]; then
  printf '%s' "$CLICKJOIN_TLS_PEM" | base64 -d > $home/connect.pem
fi
if [ -n "${CLICKJOIN_TLS_CERTIFICATE:-}" ]; then
  { cat /etc/ssl/certs/ca-certificates.crt; printf '%s' "$CLICKJOIN_TLS_CERTIFICATE" | base64 -d; } > $home/roots.pem
fi
if [ -n "${CLICKJOIN_SPARK_SECRET:-}" ]; then
  mkdir -p "$SPARK_CONF_DIR"
  { cat "$CLICKJOIN_SPARK_SETTINGS"; printf 'spark.authenticate.secret %s\n' "$CLICKJOIN_SPARK_SECRET"; } \
    > "$SPARK_CONF_DIR/spark-defaults.conf"
fi
if [ -n "${CLICKJOIN_AIRFLOW_PASSWORD:-}" ]; then
  printf '{"admin": "%s"}' "$CLICKJOIN_AIRFLOW_PASSWORD" > $home/airflow-password.json
fi
unset CLICKJOIN_TLS_PEM CLICKJOIN_TLS_CERTIFICATE CLICKJOIN_SPARK_SECRET CLICKJOIN_AIRFLOW_PASSWORD
# Lake and logs are for this user alone, unless CLICKJOIN_UMASK says otherwise.
umask "${CLICKJOIN_UMASK:-077}"
exec "$@"
