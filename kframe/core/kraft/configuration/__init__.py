"""Configurations of topics, brokers, client metrics and groups (Kafka ``ConfigurationControlManager``)."""
