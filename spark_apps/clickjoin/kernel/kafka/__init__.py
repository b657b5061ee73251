"""Reading offset ranges of Kafka topics. All of this runs on executors too, which need confluent-kafka for it."""
