"""Comparison of the logs of controllers, and recovery of a lost quorum from one of them."""

from __future__ import annotations

from kframe_kraft.recovery.comparison import (
    DamagedReplica,
    QuorumComparison,
    ReplicaLog,
    compare_replicas,
    read_replica,
)
from kframe_kraft.recovery.plan import RecoveryPlan, plan_recovery
from kframe_kraft.recovery.writing import write_recovery

__all__ = [
    "DamagedReplica",
    "QuorumComparison",
    "RecoveryPlan",
    "ReplicaLog",
    "compare_replicas",
    "plan_recovery",
    "read_replica",
    "write_recovery",
]
