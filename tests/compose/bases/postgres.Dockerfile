# Debian's PostgreSQL with as much of the official image as docker-compose.yml uses: its variables, and that it becomes its user.
FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends postgresql-15 && rm -rf /var/lib/apt/lists/*
COPY postgres.sh /usr/local/bin/postgres.sh
ENV PATH=/usr/lib/postgresql/15/bin:$PATH PGDATA=/var/lib/postgresql/data
VOLUME /var/lib/postgresql/data
ENTRYPOINT ["sh", "/usr/local/bin/postgres.sh"]
