"""Topics of Kafka: offsets in the journal, ends that are committed, nothing passed over that was deleted."""
