"""The cluster and the requests of the transport contract."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kframe.errors import ErrorCode
from kframe.model.cluster import ClusterState
from kframe.model.events import LeaderAndIsrResponseReceived
from kframe.model.ids import ReplicaFlag
from kframe.model.requests import ControlRequests
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy, requests_of

#: Fields of a partition in both requests, in the order of a trace.
ENTRY_FIELDS: Final = ("leader", "leader_epoch", "isr", "partition_epoch", "replicas")


def small_cluster() -> ClusterState:
    """Brokers 1 to 4 are registered, 4 shuts down, 9 is dead but assigned. A topic is being deleted."""
    cluster = cluster_of(
        {
            "t": [
                healthy(1, 2, 3, leader_epoch=4),
                PartitionSpec((2, 9, 4), leader=2, isr=(4, 2), leader_epoch=7, partition_epoch=3, recovery=1),
                PartitionSpec((9, 3), leader=9, isr=(9,), adding_replicas=(9,), removing_replicas=(3,)),
                PartitionSpec((3,), leader=None, isr=(3,), leader_epoch=2, partition_epoch=5),
            ],
            "gone": [PartitionSpec((2, 1), leader=2, isr=(2, 1), leader_epoch=6, partition_epoch=8)],
        },
        registered=[1, 2, 3, 4],
    )
    cluster.brokers.shutting_down[cluster.brokers.index_of([4])] = 1
    cluster.topics.deleting[1] = 1
    cluster.flag_replicas(0, cluster.brokers.index_of([3]), ReplicaFlag.OFFLINE_DIR)
    return cluster


def big_batch(cluster: ClusterState, controller_epoch: int = 1) -> ControlRequests:
    """All three requests, to four brokers."""
    return requests_of(
        cluster,
        leader_and_isr={2: ["t-0", "t-1", "gone-0"], 1: ["t-0"]},
        metadata=([1, 2, 4], ["t-0", "t-1", "gone-0"]),
        stop_replica={3: {"t-0": (4, False), "gone-0": (-2, True)}, 2: {"t-2": (0, False)}},
        controller_epoch=controller_epoch,
    )


def leader_and_isr_response(broker_id: int, controller_epoch: int = 1) -> LeaderAndIsrResponseReceived:
    """A response to LeaderAndIsr without errors. Rows are not compared."""
    return LeaderAndIsrResponseReceived(broker_id, ErrorCode.NONE, (), controller_epoch, np.empty(0, np.int32))


def leader_and_isr_entry(*values: Any, **fields: Any) -> dict[str, Any]:
    """A partition of LeaderAndIsr, as in a trace: the values of ENTRY_FIELDS, and ``fields`` that differ from a
    partition at rest."""
    defaults = {"adding_replicas": [], "removing_replicas": [], "is_new": False, "leader_recovery_state": 0}
    return {**dict(zip(ENTRY_FIELDS, values, strict=True)), **defaults, **fields}


def metadata_entry(*values: Any) -> dict[str, Any]:
    """A partition of UpdateMetadata, as in a trace: the values of ENTRY_FIELDS, then the offline replicas."""
    return dict(zip((*ENTRY_FIELDS, "offline_replicas"), values, strict=True))
