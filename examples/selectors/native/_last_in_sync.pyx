# cython: language_level=3
"""The last in-sync replica leads: as a C function. ``cdef api`` puts it into this module's ``__pyx_capi__``."""

from libc.stdint cimport int32_t

from kframe.kernels.selector cimport KFRAME_NO_LEADER, kframe_election, kframe_eligible, kframe_in_sync


cdef api int32_t last_in_sync(const kframe_election *election, void *user_data) noexcept nogil:
    cdef int32_t at
    for at in range(election.candidate_count - 1, -1, -1):
        if kframe_eligible(election, at) and kframe_in_sync(election, at):
            return at
    return KFRAME_NO_LEADER
