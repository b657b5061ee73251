"""The demonstration: real logs, fed line by line, joined by DAGs, and every sum checked."""
