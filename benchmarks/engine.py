"""The engine that the pipelines of benchmarks run on: `ENGINE=spark make bench`, or arrow."""

import os

ENGINE = os.environ.get("ENGINE", "arrow")
