"""Helpers of ``_stages.pyx``: the load of brokers in a stage, and the order of groups.

Rows of ``load`` and ``pending`` (4, b): replicas into a broker, replicas out of it, bytes in, bytes out. ``limits``
(4,): replicas a broker, bytes a broker, replicas in total, bytes in total.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

cdef enum:
    MOVES_IN = 0
    MOVES_OUT = 1
    BYTES_IN = 2
    BYTES_OUT = 3

# Groups of a rank are sorted by this many levels of pressure.
cdef enum:
    LEVELS = 32

# A group of this rank has reassignments that exceed a limit by themselves.
cdef enum:
    ALONE = 3


cdef inline bint fits_disks(
    Py_ssize_t row, const int32_t[::1] add_offsets, const int32_t[::1] adding, const int64_t[::1] size,
    const int64_t[::1] free,
) noexcept nogil:
    """Whether each new replica fits the free space of its broker."""
    cdef Py_ssize_t k
    for k in range(add_offsets[row], add_offsets[row + 1]):
        if size[row] > free[adding[k]]:
            return False
    return True


cdef inline bint fits_limits(
    Py_ssize_t row, const int32_t[::1] add_offsets, const int32_t[::1] adding, const int32_t[::1] source,
    const int64_t[::1] size, const int64_t[::1] limits, const int64_t[:, ::1] load, const int64_t[::1] total,
) noexcept nogil:
    """Whether a stage with this load can copy the new replicas too."""
    cdef Py_ssize_t k
    cdef int64_t count = add_offsets[row + 1] - add_offsets[row]
    if count == 0:
        return True
    if total[0] + count > limits[2] or total[1] + count * size[row] > limits[3]:
        return False
    if load[MOVES_OUT, source[row]] + count > limits[0] or load[BYTES_OUT, source[row]] + count * size[row] > limits[1]:
        return False
    for k in range(add_offsets[row], add_offsets[row + 1]):
        if load[MOVES_IN, adding[k]] + 1 > limits[0] or load[BYTES_IN, adding[k]] + size[row] > limits[1]:
            return False
    return True


cdef inline void add_to_stage(
    Py_ssize_t row, const int32_t[::1] add_offsets, const int32_t[::1] adding, const int32_t[::1] source,
    const int64_t[::1] size, int64_t[:, ::1] load, int64_t[:, ::1] pending, int64_t[::1] total, int64_t[::1] free,
) noexcept nogil:
    """Add the copies of a reassignment to the stage; they occupy disks from now on."""
    cdef Py_ssize_t k
    cdef int64_t count = add_offsets[row + 1] - add_offsets[row]
    if count == 0:
        return
    total[0] += count
    total[1] += count * size[row]
    load[MOVES_OUT, source[row]] += count
    load[BYTES_OUT, source[row]] += count * size[row]
    pending[MOVES_OUT, source[row]] -= count
    pending[BYTES_OUT, source[row]] -= count * size[row]
    for k in range(add_offsets[row], add_offsets[row + 1]):
        load[MOVES_IN, adding[k]] += 1
        load[BYTES_IN, adding[k]] += size[row]
        pending[MOVES_IN, adding[k]] -= 1
        pending[BYTES_IN, adding[k]] -= size[row]
        free[adding[k]] -= size[row]


cdef inline double set_pressures(
    const int64_t[:, ::1] pending, const int64_t[::1] limits, double[::1] pressure,
) noexcept nogil:
    """Set the stages that each broker needs at least for what is pending; return the largest."""
    cdef Py_ssize_t broker
    cdef double largest = 0
    for broker in range(pressure.shape[0]):
        pressure[broker] = max(
            <double>max(pending[MOVES_IN, broker], pending[MOVES_OUT, broker]) / <double>limits[0],
            <double>max(pending[BYTES_IN, broker], pending[BYTES_OUT, broker]) / <double>limits[1],
        )
        largest = max(largest, pressure[broker])
    return largest


cdef inline int32_t sort_key(
    Py_ssize_t row, uint8_t rank, const int32_t[::1] add_offsets, const int32_t[::1] adding,
    const int32_t[::1] source, const double[::1] pressure, double largest,
) noexcept nogil:
    """The position of a group in a stage, lowest first: by rank, then by the pressure on its brokers."""
    cdef Py_ssize_t k
    cdef double group_pressure = 0
    if add_offsets[row + 1] > add_offsets[row] and largest > 0:
        group_pressure = pressure[source[row]]
        for k in range(add_offsets[row], add_offsets[row + 1]):
            group_pressure = max(group_pressure, pressure[adding[k]])
        group_pressure /= largest
    return rank * LEVELS + LEVELS - 1 - min(<int32_t>(group_pressure * LEVELS), LEVELS - 1)


cdef inline Py_ssize_t sort_groups(
    Py_ssize_t active, const int32_t[::1] group_offsets, const uint8_t[::1] rank, const int32_t[::1] add_offsets,
    const int32_t[::1] adding, const int32_t[::1] source, const double[::1] pressure, double largest,
    const int32_t[::1] members, const int32_t[::1] heads, int32_t[::1] queue, int32_t[::1] key, int32_t[::1] ordered,
    int32_t[::1] starts,
) noexcept nogil:
    """Drop the empty groups from the first ``active`` of ``queue`` and sort the others; return how many."""
    cdef Py_ssize_t i, remaining = 0
    cdef int32_t group
    for i in range(starts.shape[0]):
        starts[i] = 0
    for i in range(active):
        group = queue[i]
        if heads[group] < group_offsets[group + 1]:
            key[remaining] = sort_key(
                members[heads[group]], rank[group], add_offsets, adding, source, pressure, largest)
            starts[key[remaining] + 1] += 1
            queue[remaining] = group
            remaining += 1
    for i in range(1, starts.shape[0]):
        starts[i] += starts[i - 1]
    for i in range(remaining):
        ordered[starts[key[i]]] = queue[i]
        starts[key[i]] += 1
    return remaining


cdef inline bint promote_row(
    Py_ssize_t active, const int32_t[::1] ordered, const int32_t[::1] group_offsets, const int32_t[::1] add_offsets,
    const int32_t[::1] adding, const int64_t[::1] size, const int64_t[::1] free, int32_t[::1] members,
    const int32_t[::1] heads,
) noexcept nogil:
    """Bring the first pending reassignment that fits the disks to the head of its group; return whether there is any.
    """
    cdef Py_ssize_t i, k
    cdef int32_t group, row
    for i in range(active):
        group = ordered[i]
        for k in range(heads[group], group_offsets[group + 1]):
            row = members[k]
            if fits_disks(row, add_offsets, adding, size, free):
                members[k] = members[heads[group]]
                members[heads[group]] = row
                return True
    return False


cdef inline void free_removed(
    Py_ssize_t count, const int32_t[::1] staged, const int32_t[::1] remove_offsets, const int32_t[::1] removing,
    const int64_t[::1] size, int64_t[::1] free,
) noexcept nogil:
    """Free the space of the replicas that the first ``count`` of ``taken`` remove."""
    cdef Py_ssize_t i, k
    for i in range(count):
        for k in range(remove_offsets[staged[i]], remove_offsets[staged[i] + 1]):
            free[removing[k]] += size[staged[i]]
