"""spark-submit entry point: join. Arguments: PIPELINE.yaml [REPLICA] [LEASE seconds] [ARGUMENTS as JSON]."""

from clickjoin.apps import submit

if __name__ == "__main__":
    submit("join")
