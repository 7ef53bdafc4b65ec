"""``kframe/plugin/placement.h`` for Cython: ``from kframe.kernels.placement cimport kframe_placement``."""

from libc.stdint cimport int32_t, int64_t, uint32_t

cdef extern from "kframe/plugin/placement.h" nogil:
    ctypedef struct kframe_placement:
        uint32_t size
        int32_t broker
        int32_t broker_count
        int32_t replica_count
        const int32_t *replicas
        const int32_t *broker_ids
        const int32_t *broker_rack
        int64_t weight
        int32_t topic
        int32_t partition

    ctypedef int64_t (*kframe_placement_function)(const kframe_placement *, void *) noexcept nogil
