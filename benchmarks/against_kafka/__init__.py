"""kframe beside Kafka's own controllers."""
