"""Sources of events. What stands behind the port (port.py) is the only code that touches files, S3 or Kafka."""
