# Debian's Redis under the official image's name.
FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends redis-server && rm -rf /var/lib/apt/lists/*
WORKDIR /data
CMD ["redis-server"]
