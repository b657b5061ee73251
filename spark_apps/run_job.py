"""spark-submit entry point of every job: run_job.py JOB PIPELINE.yaml [REPLICA] [LEASE] [ARGUMENTS as JSON]."""

import sys

from clickjoin.jobs.submit import main

if __name__ == "__main__":
    main(sys.argv[1:])
