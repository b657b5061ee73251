#!/bin/sh
# Secrets come as variables; what wants them in a file gets one that only this container sees.
set -eu
umask 077
if [ -n "${SPARK_CONNECT_AUTHENTICATE_TOKEN:-}" ]; then
  printf 'sc://localhost:15002/;token=%s' "$SPARK_CONNECT_AUTHENTICATE_TOKEN" > /run/clickjoin/connect-url
fi
if [ -n "${CLICKJOIN_AIRFLOW_PASSWORD:-}" ]; then
  printf '{"admin": "%s"}' "$CLICKJOIN_AIRFLOW_PASSWORD" > /run/clickjoin/airflow-password.json
fi
umask 022
exec "$@"
