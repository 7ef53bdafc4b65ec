"""Registrations of brokers and controllers, heartbeats, fencing, log directories and producer ids.

Kafka: ``ClusterControlManager``, ``BrokerHeartbeatManager`` and ``ProducerIdControlManager``. How an event of a broker
changes partitions is in ``kframe.core.kraft.replication``.
"""
