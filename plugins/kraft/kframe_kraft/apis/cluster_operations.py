"""The operation on the cluster that each API needs (Kafka 4.4 ``ControllerApis``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kframe.plugin.server import AclOperation

_ACTION, _ALTER = AclOperation.CLUSTER_ACTION, AclOperation.ALTER
#: By API key.
CLUSTER_OPERATIONS: Final[Mapping[int, AclOperation]] = {
    1: _ACTION,  # Fetch
    29: AclOperation.DESCRIBE,  # DescribeAcls
    30: _ALTER,  # CreateAcls
    31: _ALTER,  # DeleteAcls
    43: _ALTER,  # ElectLeaders
    45: _ALTER,  # AlterPartitionReassignments
    46: AclOperation.DESCRIBE,  # ListPartitionReassignments
    49: AclOperation.ALTER_CONFIGS,  # AlterClientQuotas
    51: _ALTER,  # AlterUserScramCredentials
    52: _ACTION,  # Vote
    53: _ACTION,  # BeginQuorumEpoch
    54: _ACTION,  # EndQuorumEpoch
    55: AclOperation.DESCRIBE,  # DescribeQuorum
    56: _ACTION,  # AlterPartition
    57: _ALTER,  # UpdateFeatures
    58: _ACTION,  # Envelope
    59: _ACTION,  # FetchSnapshot
    60: _ALTER,  # DescribeCluster
    62: _ACTION,  # BrokerRegistration
    63: _ACTION,  # BrokerHeartbeat
    64: _ALTER,  # UnregisterBroker
    67: _ACTION,  # AllocateProducerIds
    70: _ACTION,  # ControllerRegistration
    73: _ACTION,  # AssignReplicasToDirs
    80: _ALTER,  # AddRaftVoter
    81: _ALTER,  # RemoveRaftVoter
    82: _ACTION,  # UpdateRaftVoter
    94: _ALTER,  # UnregisterController
}
#: APIs that anyone may call, or whose handlers ask for each resource: SaslHandshake, ApiVersions, CreateTopics,
#: DeleteTopics, DescribeConfigs, AlterConfigs, SaslAuthenticate, CreatePartitions, those of delegation tokens, and
#: IncrementalAlterConfigs.
OTHER_APIS: Final = frozenset({17, 18, 19, 20, 32, 33, 36, 37, 38, 39, 40, 44})
