"""spark-submit entry point: late. Arguments: PIPELINE.yaml [REPLICA] [LEASE seconds]."""

from clickjoin.apps import submit

if __name__ == "__main__":
    submit("late")
