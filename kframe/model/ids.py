"""The vocabulary of the controller: identifiers, state codes and sentinels.

Codes and sentinels are Kafka's own (3.9 ``PartitionState``, ``ReplicaState``, ``LeaderAndIsr``), so values in a log, a
metric or a request need no translation.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final, NewType

BrokerId = NewType("BrokerId", int)
"""The registered number of a broker. Used in storage, on the wire and by operators."""
Row = NewType("Row", int)
"""Position of a partition in the partition columns."""

NO_LEADER: Final = -1
"""The leader of a partition that has none."""
LEADER_DURING_DELETE: Final = -2
"""The leader that UpdateMetadata names for a partition whose topic is being deleted."""
EPOCH_DURING_DELETE: Final = -2
"""The leader epoch that StopReplica carries for a topic that is being deleted."""
NO_EPOCH: Final = -1
"""The leader epoch that StopReplica carries for a partition that never had a leader."""
NO_STATE: Final = -1
"""The partition epoch of a partition that has no leadership state in storage yet."""
STATE_SHIFT: Final = 3
"""The columns ``status`` and ``replica_status`` have a state from this bit on, and flags below it."""
FLAGS_MASK: Final = (1 << STATE_SHIFT) - 1
"""The bits of the flags."""
NO_BROKER_EPOCH: Final = -1
"""The broker epoch of a broker that is not registered."""


class PartitionState(IntEnum):
    """State of a partition (Kafka 3.9 ``PartitionState``)."""

    NEW = 0
    ONLINE = 1
    OFFLINE = 2
    NON_EXISTENT = 3


class ReplicaState(IntEnum):
    """State of a replica (Kafka 3.9 ``ReplicaState``)."""

    NEW = 1
    ONLINE = 2
    OFFLINE = 3
    DELETION_STARTED = 4
    DELETION_SUCCESSFUL = 5
    DELETION_INELIGIBLE = 6
    NON_EXISTENT = 7


class RecoveryState(IntEnum):
    """Whether a leader still has to recover from an unclean election (inter-broker protocol 3.2 and later)."""

    RECOVERED = 0
    RECOVERING = 1


class ProposalCheck(IntEnum):
    """The checks of a proposed ISR, in the order in which they apply (Kafka 3.9 ``tryProcessAlterPartition``)."""

    VALID = 0
    """No check applies: the ISR is to be stored."""
    STATELESS = 1
    NEWER_EPOCH = 2
    OLDER_LEADER_EPOCH = 3
    REPEATED = 4
    """The stored state is the proposed one."""
    OLDER_PARTITION_EPOCH = 5
    MALFORMED = 6
    INELIGIBLE_MEMBER = 7


class ReplicaFlag(IntEnum):
    """Flags of a replica. They are the lowest bits of its status, FLAGS_MASK; its ReplicaState follows them."""

    ADDING = 1
    REMOVING = 2
    OFFLINE_DIR = 4


class PartitionFlag(IntEnum):
    """Flags of a partition. They are the lowest bits of its status, FLAGS_MASK; its PartitionState follows them."""

    RECOVERING = RecoveryState.RECOVERING
    REASSIGNING = 2


class ElectionKind(IntEnum):
    """The leader election strategies (Kafka 3.9 ``Election``). ``INITIAL`` is the rule for a new partition."""

    OFFLINE = 0
    REASSIGN = 1
    PREFERRED = 2
    CONTROLLED_SHUTDOWN = 3
    INITIAL = 4


class Api(StrEnum):
    """The three control requests by Kafka's names."""

    LEADER_AND_ISR = "LeaderAndIsr"
    UPDATE_METADATA = "UpdateMetadata"
    STOP_REPLICA = "StopReplica"
