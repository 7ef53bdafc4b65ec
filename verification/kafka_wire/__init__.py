"""Test tools of the plugin: fake and real brokers, clients, and Kafka's command-line tools."""
