# versitygw, an S3 server over a folder, for trying things out: production has a store of its own.
ARG GO_IMAGE=golang:1.26-bookworm
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
FROM ${GO_IMAGE} AS build
RUN CGO_ENABLED=0 GOFLAGS="-buildvcs=false -mod=mod" GOBIN=/out \
    go install github.com/versity/versitygw/cmd/versitygw@v1.8.0

FROM ${PYTHON_IMAGE}
RUN useradd --uid 1000 clickjoin && install -d -o clickjoin -g clickjoin /objects
COPY --from=build /out/versitygw /usr/local/bin/versitygw
COPY infra/images/healthy.py infra/images/s3.sh /opt/clickjoin/infra/images/
USER clickjoin
WORKDIR /opt/clickjoin
CMD ["infra/images/s3.sh"]
