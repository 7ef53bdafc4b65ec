"""Kernels that divide a batch into request sections, and encode all of a section but its entries.

The partitions of a request form a *section*: an array of topics, each with its name, its topic id and an array of
*entries*, one per partition. Before LeaderAndIsr 2, UpdateMetadata 5 and StopReplica 1 a section is a flat array of
entries, each with the topic name in front. After the section comes the *tail* of the request: the live brokers or
leaders that it lists, and the end of the struct.

A batch has one list of rows for each broker, or one list for all brokers if all receive the same. It may have hundreds
of small requests or a few very large ones, so each kernel processes a *group* of sections, whose requests share memory.
Encoding takes two passes, so that memory is allocated once and exactly: ``fit_sections`` and ``measure_live_leaders``
return the lengths of sections and tails; ``frame_sections`` writes what is between entries and returns the offset of
each entry; ``write_live_leaders`` writes the tails. The last two return how many requests have the computed length.

Conventions: ``kframe/_core.pyx`` and ``_request_entries.pyx``, but (s,) has one element per section. Recurring
arguments: ``rows`` (k,) the rows of a group; ``section_start`` (s+1,) where the rows of each section begin;
``section_offset`` (s+1,) where the bytes of each section begin, with tails between them; ``name_offsets`` (t+1,) and
``names`` the topic names in UTF-8; ``topic_ids`` (16t,); ``grouped`` 1 where sections are arrays of topics;
``with_topic_ids`` 1 where topics carry their id. Reference: ``reference/requests.py``.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kframe.kernels.encoding cimport length_size, name_size, put_bytes, put_int8, put_length, put_name
from kframe.kernels.prefetch cimport KFRAME_PREFETCH, PREFETCH_ROWS
from kframe.kernels.types cimport broker_t

cdef enum:
    TOPIC_ID_BYTES = 16

# RUN rows are processed together without branches; FAR is the row distance from which leaders are prefetched.
cdef enum:
    RUN = 16
    FAR = 64


def fit_sections(
    const int32_t[::1] offsets,       # IN   (l+1,)  where each list begins in ``rows``, ascending
    const int32_t[::1] rows,          # IN   (m,)    all rows, list by list, each list grouped by topic
    Py_ssize_t first,                 # IN           position of the first row of the group
    int64_t byte_limit,               # IN           limit of a section; its first entry always fits
    int64_t group_limit,              # IN           limit of the group; its first section always fits
    int64_t tail_max,                 # IN           largest tail, which counts towards the group only
    const int32_t[::1] entry_size,    # IN   (n,)    bytes of each row's entry; (1,) if all are equal
    const int32_t[::1] topic,         # IN   (n,)
    const int32_t[::1] name_offsets,  # IN   (t+1,)
    bint grouped,                     # IN
    bint compact,                     # IN
    bint with_topic_ids,              # IN
    int32_t[::1] row_topic,           # OUT  (m,)    topic of each row of the group
    int32_t[::1] row_size,            # OUT  (m,)    entry size of each row of the group
    int32_t[::1] section_list,        # OUT  (s,)    list of the section; s is the largest number of sections
    int32_t[::1] section_start,       # OUT  (s+1,)  relative to the first row of the group
    int32_t[::1] section_items,       # OUT  (s,)    length of the outer array
    int64_t[::1] section_length,      # OUT  (s,)    bytes
):
    """Divide rows from ``first`` on into sections until the group is full; return how many.

    A section ends where it is full or its list ends. OUT arrays may be written to beyond the group.
    """
    cdef Py_ssize_t i = first, stop, list_index = 0, s = 0
    cdef int64_t used = 0
    with nogil:
        while i < rows.shape[0] and s < section_list.shape[0]:
            while offsets[list_index + 1] <= i:
                list_index += 1
            stop = fit_section(
                rows, i, offsets[list_index + 1], byte_limit, entry_size, topic, name_offsets, grouped, compact,
                with_topic_ids, first, row_topic, row_size, &section_items[s], &section_length[s])
            used += section_length[s] + tail_max
            if s > 0 and used > group_limit:
                break
            section_list[s] = <int32_t> list_index
            section_start[s] = <int32_t> (i - first)
            i = stop
            s += 1
        section_start[s] = <int32_t> (i - first)
    return s


cdef inline Py_ssize_t fit_section(
    const int32_t[::1] rows, Py_ssize_t start, Py_ssize_t end, int64_t byte_limit, const int32_t[::1] entry_size,
    const int32_t[::1] topic, const int32_t[::1] name_offsets, bint grouped, bint compact, bint with_topic_ids,
    Py_ssize_t first, int32_t[::1] row_topic, int32_t[::1] row_size, int32_t* outer, int64_t* length,
) noexcept nogil:
    """Take rows from ``start`` while they fit; return the position after the last one."""
    cdef Py_ssize_t i = start, items = 0, run = 0
    cdef bint by_row = entry_size.shape[0] > 1
    cdef int64_t growth, total = length_size(0, compact)
    cdef int32_t topic_index, entry, current = -1
    cdef int32_t[RUN] size
    # Rows far apart rarely belong to one topic.
    cdef bint near = grouped and rows[end - 1] - rows[start] < 4 * (end - start)
    while i < end:
        if near and i + RUN <= end and topic[rows[i + RUN - 1]] == current:
            growth = length_size(run + RUN, compact) - length_size(run, compact)
            if sum_entries(rows, i, current, entry_size, topic, size, &growth) and total + growth <= byte_limit:
                put_run(current, size, i - first, row_topic, row_size)
                run += RUN
                total += growth
                i += RUN
                continue
        if i + PREFETCH_ROWS < rows.shape[0]:
            KFRAME_PREFETCH(&topic[rows[i + PREFETCH_ROWS]])
            if by_row:
                KFRAME_PREFETCH(&entry_size[rows[i + PREFETCH_ROWS]])
        topic_index = topic[rows[i]]
        entry = entry_size[rows[i] if by_row else 0]
        growth = entry
        if grouped and topic_index == current:
            growth += length_size(run + 1, compact) - length_size(run, compact)
        else:
            growth += length_size(items + 1, compact) - length_size(items, compact)
            growth += name_size(name_offsets[topic_index + 1] - name_offsets[topic_index], compact)
            if grouped:
                growth += TOPIC_ID_BYTES * with_topic_ids + length_size(1, compact) + compact
        if i > start and total + growth > byte_limit:
            break
        if grouped and topic_index == current:
            run += 1
        else:
            items += 1
            run = 1
        row_topic[i - first] = current = topic_index
        row_size[i - first] = entry
        total += growth
        i += 1
    outer[0] = <int32_t> items
    length[0] = total
    return i


cdef inline bint sum_entries(
    const int32_t[::1] rows, Py_ssize_t i, int32_t current, const int32_t[::1] entry_size, const int32_t[::1] topic,
    int32_t* size, int64_t* total,
) noexcept nogil:
    """Store the sizes of RUN entries and add them to ``total``; return whether all are of topic ``current``."""
    cdef Py_ssize_t k
    cdef int64_t bytes_added = 0
    cdef int32_t mismatch = 0
    cdef bint by_row = entry_size.shape[0] > 1
    for k in range(RUN):
        size[k] = entry_size[rows[i + k] if by_row else 0]
        bytes_added += size[k]
        mismatch |= topic[rows[i + k]] ^ current
    total[0] += bytes_added
    return mismatch == 0


cdef inline void put_run(
    int32_t current, const int32_t* size, Py_ssize_t position, int32_t[::1] row_topic, int32_t[::1] row_size,
) noexcept nogil:
    """Write the topic and the sizes of RUN rows."""
    cdef Py_ssize_t k
    for k in range(RUN):
        row_topic[position + k] = current
        row_size[position + k] = size[k]


def frame_sections(
    const int32_t[::1] section_start,   # IN   (s+1,)
    const int32_t[::1] section_items,   # IN   (s,)    from fit_sections
    const int64_t[::1] section_length,  # IN   (s,)    from fit_sections
    const int64_t[::1] section_offset,      # IN   (s+1,)
    const int32_t[::1] row_topic,       # IN   (k,)    from fit_sections
    const int32_t[::1] row_size,        # IN   (k,)    from fit_sections
    const int32_t[::1] name_offsets,    # IN   (t+1,)
    const uint8_t[::1] names,           # IN
    const uint8_t[::1] topic_ids,       # IN   (16t,)
    bint grouped,                       # IN
    bint compact,                       # IN
    bint with_topic_ids,                # IN
    const uint8_t[::1] tail,            # IN           the tail of each section; empty if tails differ
    int64_t[::1] entry_offset,          # OUT  (k,)    where the entry of ``rows[i]`` goes
    uint8_t[::1] out,                   # OUT          the group; entries are left unchanged
):
    """Write everything but the entries of sections; return how many sections have the computed length."""
    cdef Py_ssize_t s = 0, i, stop, end, offset
    with nogil:
        for s in range(section_items.shape[0]):
            i = section_start[s]
            end = section_start[s + 1]
            offset = put_length(out, section_offset[s], section_items[s], compact)
            while i < end:
                stop = run_end(row_topic, i, end) if grouped else i + 1
                offset = put_topic(
                    out, offset, name_offsets, names, topic_ids, row_topic[i], stop - i, grouped, compact,
                    with_topic_ids)
                while i < stop:
                    entry_offset[i] = offset
                    offset += row_size[i]
                    i += 1
                if compact:
                    offset = put_int8(out, offset, 0)
            if offset - section_offset[s] != section_length[s]:
                break
            put_bytes(out, offset, tail, 0, tail.shape[0])
        else:
            s = section_items.shape[0]
    return s


cdef inline Py_ssize_t run_end(const int32_t[::1] row_topic, Py_ssize_t i, Py_ssize_t end) noexcept nogil:
    """The position after the last consecutive row of the topic of row ``i``."""
    cdef int32_t current = row_topic[i]
    i += 1
    while i < end and row_topic[i] == current:
        i += 1
    return i


cdef inline Py_ssize_t put_topic(
    uint8_t[::1] out, Py_ssize_t offset, const int32_t[::1] name_offsets, const uint8_t[::1] names,
    const uint8_t[::1] topic_ids, Py_ssize_t topic, Py_ssize_t count, bint grouped, bint compact, bint with_topic_ids,
) noexcept nogil:
    """Write what precedes the ``count`` entries of a topic, or each entry if they are not grouped."""
    offset = put_name(out, offset, names, name_offsets[topic], name_offsets[topic + 1] - name_offsets[topic], compact)
    if grouped:
        if with_topic_ids:
            offset = put_bytes(out, offset, topic_ids, TOPIC_ID_BYTES * topic, TOPIC_ID_BYTES)
        offset = put_length(out, offset, count, compact)
    return offset


def measure_live_leaders(
    const int32_t[::1] section_start,  # IN   (s+1,)
    const int32_t[::1] rows,           # IN   (k,)
    const broker_t[::1] leader,        # IN   (n,)
    const int32_t[::1] leader_size,    # IN   (b,)    bytes of each broker in a tail, 0 for a broker to leave out
    Py_ssize_t max_leaders,            # IN           upper bound of the leaders in a section, which ends a scan early
    bint compact,                      # IN
    int32_t[::1] last_section,         # OUT  (b,)    last section that lists the broker, or -1
    int64_t[::1] tail_length,          # OUT  (s,)    bytes of the array of the section's leaders, and the end of struct
):
    """Compute the lengths of the tails of LeaderAndIsr requests; return the total."""
    cdef Py_ssize_t s, b
    cdef int64_t size, total = 0
    with nogil:
        for b in range(last_section.shape[0]):
            last_section[b] = -1
        for s in range(tail_length.shape[0]):
            size = 0
            b = mark_live_leaders(
                rows, section_start[s], section_start[s + 1], leader, leader_size, max_leaders, s, last_section, &size)
            tail_length[s] = length_size(b, compact) + size + compact
            total += tail_length[s]
    return total


cdef inline Py_ssize_t mark_live_leaders(
    const int32_t[::1] rows, Py_ssize_t start, Py_ssize_t end, const broker_t[::1] leader,
    const int32_t[::1] leader_size, Py_ssize_t max_leaders, Py_ssize_t section, int32_t[::1] last_section,
    int64_t* size,
) noexcept nogil:
    """Mark the leaders of a section and add up their bytes; return how many."""
    cdef Py_ssize_t i = start, stop, matches = 0
    cdef int32_t broker
    while i < end and matches < max_leaders:
        stop = min(i + RUN, end)
        if stop == i + RUN and all_listed(rows, i, end, leader, section, last_section):
            i = stop
            continue
        while i < stop and matches < max_leaders:
            broker = leader[rows[i]]
            if broker >= 0 and last_section[broker] != section and leader_size[broker] > 0:
                last_section[broker] = <int32_t> section
                size[0] += leader_size[broker]
                matches += 1
            i += 1
    return matches


cdef inline bint all_listed(
    const int32_t[::1] rows, Py_ssize_t i, Py_ssize_t end, const broker_t[::1] leader, Py_ssize_t section,
    const int32_t[::1] last_section,
) noexcept nogil:
    """Whether the section lists the leaders of RUN rows already; prefetches the leaders of later rows if rows are far
    apart."""
    cdef Py_ssize_t k
    cdef broker_t[RUN] leaders
    cdef broker_t signs = 0
    cdef int32_t unlisted = 0
    if rows[i + RUN - 1] - rows[i] >= FAR:
        for k in range(i + PREFETCH_ROWS, min(i + PREFETCH_ROWS + RUN, end)):
            KFRAME_PREFETCH(&leader[rows[k]])
    for k in range(RUN):
        leaders[k] = leader[rows[i + k]]
        signs |= leaders[k]
    if signs < 0:
        return False
    for k in range(RUN):
        unlisted |= last_section[leaders[k]] ^ <int32_t> section
    return unlisted == 0


def write_live_leaders(
    const int32_t[::1] section_start,  # IN   (s+1,)
    const int32_t[::1] rows,           # IN   (k,)
    const broker_t[::1] leader,        # IN   (n,)
    const int32_t[::1] leader_size,    # IN   (b,)    as for measure_live_leaders
    const int32_t[::1] leader_brokers,  # IN  (q,)    brokers that may be listed, ascending by id
    const uint8_t[::1] leader_bytes,   # IN           their encodings, one after another
    bint compact,                      # IN
    const int64_t[::1] section_offset,     # IN   (s+1,)
    const int64_t[::1] tail_length,    # IN   (s,)    from measure_live_leaders
    int32_t[::1] last_section,         # OUT  (b,)    last section that lists the broker, or -1
    uint8_t[::1] out,                  # OUT          the group
):
    """Write the tails of LeaderAndIsr requests, leaders ascending by id; return how many have the computed length.

    Cost O(k + s * q).
    """
    cdef Py_ssize_t s = 0, b, i, offset, leader_offset, max_leaders = leader_brokers.shape[0]
    cdef int64_t size = 0
    with nogil:
        for b in range(last_section.shape[0]):
            last_section[b] = -1
        for s in range(tail_length.shape[0]):
            b = mark_live_leaders(
                rows, section_start[s], section_start[s + 1], leader, leader_size, max_leaders, s, last_section, &size)
            offset = put_length(out, section_offset[s + 1] - tail_length[s], b, compact)
            leader_offset = 0
            for i in range(max_leaders):
                b = leader_brokers[i]
                if last_section[b] == s:
                    offset = put_bytes(out, offset, leader_bytes, leader_offset, leader_size[b])
                leader_offset += leader_size[b]
            if compact:
                offset = put_int8(out, offset, 0)
            if offset != section_offset[s + 1]:
                break
        else:
            s = tail_length.shape[0]
    return s
