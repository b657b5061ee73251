# This machine's Go under the official image's name; built in Go's own folder.
FROM python:3.11-slim-bookworm
COPY . /usr/local/go
ENV PATH=/usr/local/go/bin:$PATH
