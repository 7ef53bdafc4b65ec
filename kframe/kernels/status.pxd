"""Status bytes of partitions and replicas: a state from bit STATE_SHIFT on, flags below it."""

from libc.stdint cimport uint8_t

from kframe.kernels.constants cimport FLAGS_MASK, STATE_SHIFT


cdef inline uint8_t state_of(uint8_t status) noexcept nogil:
    return status >> STATE_SHIFT


cdef inline uint8_t to_state(uint8_t status, int state) noexcept nogil:
    """The status with another state and the same flags."""
    return status & FLAGS_MASK | <uint8_t>(state << STATE_SHIFT)
