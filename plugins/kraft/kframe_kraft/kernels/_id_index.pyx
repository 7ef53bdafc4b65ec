"""Look up UUIDs in a hash table of two arrays: topic ids and directory ids of partition records as indexes.

The table has open addressing with linear probing. Its capacity is a power of two, and at least one entry is free; a
free entry has the value -1.

The rules are those of ``kframe/_core.pyx``: typed views, IN and OUT, no allocation, and no GIL.
``verification/reference/id_index.py`` has a reference implementation with the same names and signatures. The cost is
linear in the ids while the table is at most half full and its ids are random.
"""

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy


cdef inline Py_ssize_t entry_of(
    const uint8_t* id, const uint8_t[:, ::1] keys, const int32_t[::1] values,
) noexcept nogil:
    """The entry of an id, or the free entry where it belongs."""
    cdef uint64_t[2] halves
    memcpy(halves, id, 16)
    cdef uint64_t mixed = (halves[0] ^ (halves[1] * <uint64_t> 0x9E3779B97F4A7C15)) * <uint64_t> 0xD6E8FEB86659FD93
    cdef Py_ssize_t last = keys.shape[0] - 1
    cdef Py_ssize_t entry = <Py_ssize_t> (mixed >> 32) & last
    while values[entry] >= 0 and memcmp(&keys[entry, 0], id, 16) != 0:
        entry = (entry + 1) & last
    return entry


def find_ids(
    const uint8_t[:, ::1] ids,      # IN   (n, 16)
    const uint8_t[:, ::1] keys,     # IN   (c, 16)  the table
    const int32_t[::1] values,      # IN   (c,)
    int32_t[::1] out,               # OUT  (n,)     the value of each id; -1 where it is not in the table
) -> int:
    """Return the number of ids that are not in the table."""
    cdef Py_ssize_t i, missing = 0
    with nogil:
        for i in range(ids.shape[0]):
            if i and memcmp(&ids[i, 0], &ids[i - 1, 0], 16) == 0:
                out[i] = out[i - 1]
            else:
                out[i] = values[entry_of(&ids[i, 0], keys, values)]
            missing += out[i] < 0
    return missing


def insert_ids(
    const uint8_t[:, ::1] ids,      # IN   (n, 16)
    const int32_t[::1] numbers,     # IN   (n,)     not negative
    uint8_t[:, ::1] keys,           # OUT  (c, 16)  the table, with at least n + 1 free entries
    int32_t[::1] values,            # OUT  (c,)
) -> None:
    """Insert ids; an id that is in the table gets the new value."""
    cdef Py_ssize_t i, entry
    with nogil:
        for i in range(ids.shape[0]):
            entry = entry_of(&ids[i, 0], keys, values)
            memcpy(&keys[entry, 0], &ids[i, 0], 16)
            values[entry] = numbers[i]
