"""Reassignment of partitions to other brokers, by Kafka's present protocol and by that of Kafka 0.8."""
