"""Sources of events. What stands behind the port in `base` is the only code that touches files, S3 or Kafka."""
