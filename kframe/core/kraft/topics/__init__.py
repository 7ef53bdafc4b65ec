"""Creation and deletion of topics, their partitions, and the placement of replicas (Kafka
``ReplicationControlManager`` and ``StripedReplicaPlacer``)."""
