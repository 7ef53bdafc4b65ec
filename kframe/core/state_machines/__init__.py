"""The partition and replica state machines, in bulk, and the leader elections that they trigger.

Kafka 3.9 ``ZkPartitionStateMachine``, ``ZkReplicaStateMachine`` and ``Election``.
"""
