"""spark-submit entry point: gc. Arguments: PIPELINE.yaml [REPLICA] [LEASE seconds]."""

from clickjoin.apps import submit

if __name__ == "__main__":
    submit("gc")
