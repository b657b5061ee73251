"""Tests against a real S3 server: versitygw, built from Go's modules once for a machine, and a proxy before it."""
