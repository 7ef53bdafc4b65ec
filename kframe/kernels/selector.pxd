"""``kframe/plugin/selector.h`` for Cython: ``from kframe.kernels.selector cimport kframe_election``."""

from libc.stdint cimport int16_t, int32_t, uint8_t, uint32_t

cdef extern from "kframe/plugin/selector.h" nogil:
    const char *KFRAME_SELECT_SIGNATURE

    enum:
        KFRAME_NO_LEADER
        KFRAME_OFFLINE_DIR
        KFRAME_OFFLINE
        KFRAME_REASSIGN
        KFRAME_PREFERRED
        KFRAME_CONTROLLED_SHUTDOWN
        KFRAME_INITIAL

    ctypedef int16_t kframe_broker

    ctypedef struct kframe_election:
        uint32_t size
        int32_t kind
        int32_t candidate_count
        int32_t isr_count
        const kframe_broker *candidates
        const uint8_t *candidate_flags
        const kframe_broker *isr
        const int32_t *broker_ids
        const int32_t *broker_rack
        const uint8_t *broker_live
        const uint8_t *broker_shutting_down
        const int32_t *topics
        const int32_t *partitions
        const kframe_broker *leaders
        const int32_t *leader_epochs
        int32_t row
        int32_t broker_count
        uint32_t seed
        uint8_t unclean_allowed

    ctypedef int32_t (*kframe_select)(const kframe_election *, void *) noexcept nogil

    bint kframe_eligible(const kframe_election *, int32_t)
    bint kframe_in_sync(const kframe_election *, int32_t)
    int32_t kframe_topic(const kframe_election *)
    int32_t kframe_partition(const kframe_election *)
    int32_t kframe_leader(const kframe_election *)
    int32_t kframe_leader_epoch(const kframe_election *)
