"""Changes of partitions: leaders, ISRs, ELRs, reassignments and assigned log directories.

Kafka: ``ReplicationControlManager`` and ``PartitionChangeBuilder``. Every change of a partition is decided by
``partition_changes``. New partitions are in ``kframe.core.kraft.topics``.
"""
