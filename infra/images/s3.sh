#!/bin/sh
# An S3 server with the buckets that CLICKJOIN_BUCKETS names. ROOT_ACCESS_KEY and ROOT_SECRET_KEY come from who starts it.
set -eu
for bucket in $CLICKJOIN_BUCKETS; do mkdir -p "/objects/$bucket"; done
exec versitygw --port :7070 --quiet posix /objects
