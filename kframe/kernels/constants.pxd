"""Constants of the columns, as in ``kframe/model/ids.py``; ``tests/kernels/test_constants.py`` compares the two."""

cdef enum:
    NO_LEADER = -1
    NO_STATE = -1
    NO_EPOCH = -1
    LEADER_DURING_DELETE = -2
    EPOCH_DURING_DELETE = -2
    STATE_SHIFT = 3
    FLAGS_MASK = 7

cdef enum ReplicaFlag:
    ADDING = 1
    REMOVING = 2
    OFFLINE_DIR = 4

cdef enum PartitionFlag:
    PARTITION_RECOVERING = 1
    PARTITION_REASSIGNING = 2

cdef enum ElectionKind:
    ELECT_OFFLINE = 0
    ELECT_REASSIGN = 1
    ELECT_PREFERRED = 2
    ELECT_CONTROLLED_SHUTDOWN = 3
    ELECT_INITIAL = 4

cdef enum PartitionState:
    PARTITION_NEW = 0
    PARTITION_ONLINE = 1
    PARTITION_OFFLINE = 2

cdef enum ReplicaState:
    REPLICA_ONLINE = 2
    REPLICA_DELETION_INELIGIBLE = 6
    REPLICA_NON_EXISTENT = 7

cdef enum RecoveryState:
    RECOVERED = 0
    RECOVERING = 1

cdef enum ProposalCheck:
    VALID = 0
    STATELESS = 1
    NEWER_EPOCH = 2
    OLDER_LEADER_EPOCH = 3
    REPEATED = 4
    OLDER_PARTITION_EPOCH = 5
    MALFORMED = 6
    INELIGIBLE_MEMBER = 7
