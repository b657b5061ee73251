"""Print Spark's settings for S3, by the environment, as lines of a properties file."""

from __future__ import annotations

import os

from clickjoin.spark import object_store

if __name__ == "__main__":
    for name, value in object_store.settings(os.environ).items():
        print(name, value)
