"""Creation and deletion of topics, their new partitions, and the placement of replicas.

Kafka: ``ReplicationControlManager`` and ``StripedReplicaPlacer``.
"""
