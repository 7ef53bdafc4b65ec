"""Kafka's wire protocol in both directions: control requests to brokers, and requests from brokers and clients."""
