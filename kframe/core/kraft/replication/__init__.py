"""Changes of partitions: leaders, ISRs, ELRs, reassignments and log directories (Kafka ``ReplicationControlManager``
and ``PartitionChangeBuilder``)."""
