"""Several pipelines joined by one process, side by side: each on a session of its own, a few at a time."""
