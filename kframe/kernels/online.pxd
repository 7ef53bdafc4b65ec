"""Whether a leader or an ISR member is online (Kafka 3.9 ``ControllerContext.isReplicaOnline``)."""

from libc.stdint cimport int16_t, int32_t, uint8_t

from kframe.kernels.constants cimport OFFLINE_DIR
from kframe.kernels.types cimport broker_t


cdef inline bint member_online(
    const broker_t[::1] replica, const uint8_t[::1] replica_status, const uint8_t[::1] live,
    Py_ssize_t start, Py_ssize_t count, Py_ssize_t slot, int32_t broker,
) noexcept nogil:
    """Whether ``broker``, a member of this row's ISR or its leader, is online. Its replica is mostly in ``slot``."""
    cdef Py_ssize_t k
    if live[broker] == 0:
        return False
    if slot < start + count and replica[slot] == broker:
        return (replica_status[slot] & OFFLINE_DIR) == 0
    for k in range(start, start + count):
        if replica[k] == broker:
            return (replica_status[k] & OFFLINE_DIR) == 0
    return True


cdef inline bint has_online_leader(
    Py_ssize_t row, const broker_t[::1] leader, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const broker_t[::1] replica, const uint8_t[::1] replica_status, const uint8_t[::1] live,
) noexcept nogil:
    """Whether a row has an online leader, which is mostly its first replica."""
    cdef Py_ssize_t start = slot_start[row]
    return leader[row] >= 0 and member_online(
        replica, replica_status, live, start, replica_count[row], start, leader[row])
