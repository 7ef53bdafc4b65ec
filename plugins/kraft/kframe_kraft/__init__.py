"""The metadata log of Kafka's KRaft mode."""
