"""Kafka's wire protocol, in both directions: control requests to brokers, and what brokers and clients ask."""
