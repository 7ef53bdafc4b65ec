"""Registrations of brokers and controllers, heartbeats, fencing and producer ids (Kafka ``ClusterControlManager``,
``BrokerHeartbeatManager`` and ``ProducerIdControlManager``)."""
