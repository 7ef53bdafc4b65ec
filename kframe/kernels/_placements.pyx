"""The loop that calls native cost terms and goals. ``kframe/plugin/placement.h`` documents them.

Reference: ``tests/registry/placement_reference.py``.
"""

from libc.stdint cimport int32_t, int64_t

from kframe.kernels.placement cimport kframe_placement_function, kframe_placement

#: Size of the struct in bytes, for its reference.
PLACEMENT_SIZE = sizeof(kframe_placement)


def call_native(
    size_t function,                     # IN   address of a kframe_placement_function
    size_t user_data,                    # IN   passed to it unchanged
    const int32_t[::1] topic,            # IN   (k,)
    const int32_t[::1] partition,        # IN   (k,)
    const int64_t[::1] weight,           # IN   (k,)
    const int32_t[::1] offsets,          # IN   (k + 1,)
    const int32_t[::1] values,           # IN   (s,) broker indexes
    const int32_t[::1] broker_ids,       # IN   (b,)
    const int32_t[::1] broker_rack,      # IN   (b,)
    bint by_broker,                      # IN   for each broker instead of once for each partition
    int64_t[:, ::1] result,              # OUT  (k, b), or (k, 1)
):
    """Call ``function`` for each partition, or each partition and broker. Trusts its caller for all lengths."""
    cdef kframe_placement_function call = <kframe_placement_function>function
    cdef kframe_placement p
    cdef Py_ssize_t i
    cdef int32_t broker
    p.size, p.broker_count = sizeof(kframe_placement), <int32_t>broker_ids.shape[0]
    p.broker_ids = &broker_ids[0] if broker_ids.shape[0] else NULL
    p.broker_rack = &broker_rack[0] if broker_rack.shape[0] else NULL
    with nogil:
        for i in range(topic.shape[0]):
            p.topic, p.partition, p.weight = topic[i], partition[i], weight[i]
            p.replica_count = offsets[i + 1] - offsets[i]
            p.replicas = &values[offsets[i]] if p.replica_count else NULL
            if not by_broker:
                p.broker = -1
                result[i, 0] = call(&p, <void *>user_data)
                continue
            for broker in range(p.broker_count):
                p.broker = broker
                result[i, broker] = call(&p, <void *>user_data)
