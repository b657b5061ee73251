"""spark-submit entry point: reshard. Arguments: PIPELINE.yaml [REPLICA] [LEASE seconds]."""

from clickjoin.apps import submit

if __name__ == "__main__":
    submit("reshard")
