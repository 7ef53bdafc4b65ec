"""Kernels that divide a batch into the sections of its requests, and write all of a section but its entries.

A request's partitions stand in a *section*: an array of topics, each with its name (and topic id) and an array of
*entries*, one a partition; before LeaderAndIsr 2, UpdateMetadata 5 and StopReplica 1 a flat array of entries, the name
before each. Behind the section stands the request's *tail*: the brokers that it names and the end of the struct.

A batch is ``lists`` of rows, one for each broker (or one for all, where all are told the same), and may have hundreds
of small requests or a few huge ones; so each kernel does a whole *group* of sections, whose requests share memory.
Bytes are written in two passes, so that memory is allocated once and exactly: ``fit_sections`` and ``measure_leaders``
say how long sections and tails will be; ``frame_sections`` writes what stands between entries and says where each goes,
``write_leaders`` the tails. The latter two return how many requests came out as long as they were measured.

The house rules, and arguments not explained here, are those of ``_wire.pyx``, but (s,) has one for each section.
Arguments that recur: ``rows`` (k,) those of a group; ``section_start`` (s+1,) where each section's begin among them;
``section_at`` (s+1,) where each section's bytes begin, tails between them; ``name_offsets`` (t+1,) and ``names`` the
topics' names in UTF-8; ``topic_ids`` (16t,); ``grouped`` whether sections are arrays of topics, ``with_topic_ids``
whether these carry their id.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kframe.column cimport broker_t
from kframe.prefetch cimport AHEAD, KFRAME_PREFETCH
from kframe.wire_bytes cimport (
    length_size,
    name_size,
    put_bytes,
    put_int8,
    put_length,
    put_name,
)

cdef enum:
    TOPIC_ID_BYTES = 16

# So many rows are looked at together, with no branch for each; whether they lie in a few cache lines.
cdef enum:
    RUN = 16
    FAR = 64


def fit_sections(
    const int32_t[::1] offsets,       # IN   (l+1,)  where each list begins among all rows, ascending
    const int32_t[::1] rows,          # IN   (m,)    all rows, list by list, each list grouped by topic
    Py_ssize_t first,                 # IN           first of them that the group takes
    int64_t byte_limit,               # IN           most bytes of a section; its first entry goes in at any length
    int64_t group_limit,              # IN           most bytes of the group; its first section goes in at any length
    int64_t tail_max,                 # IN           most bytes of each section's tail, counted towards the group only
    const int32_t[::1] entry_size,    # IN   (n,)    bytes of each row's entry
    const int32_t[::1] topic,         # IN   (n,)
    const int32_t[::1] name_offsets,  # IN   (t+1,)
    bint grouped,                     # IN
    bint compact,                     # IN
    bint with_topic_ids,              # IN
    int32_t[::1] row_topic,           # OUT  (m,)    topic of each row taken, from the group's first
    int32_t[::1] row_size,            # OUT  (m,)    bytes of the entry of each row taken, likewise
    int32_t[::1] section_list,        # OUT  (s,)    the list that the section is of; s is the most that are cut
    int32_t[::1] section_start,       # OUT  (s+1,)  counted from the group's first row
    int32_t[::1] section_items,       # OUT  (s,)    length of the outer array
    int64_t[::1] section_length,      # OUT  (s,)    bytes
):
    """Cut sections from ``first`` on for as long as they fit in a group; return how many.

    A section is full, or the list ends. What else is OUT, behind the group's own, may have been written to.
    """
    cdef Py_ssize_t i = first, stop, at_list = 0, s = 0
    cdef int64_t used = 0
    with nogil:
        while i < rows.shape[0] and s < section_list.shape[0]:
            while offsets[at_list + 1] <= i:
                at_list += 1
            stop = fit_section(
                rows, i, offsets[at_list + 1], byte_limit, entry_size, topic, name_offsets, grouped, compact,
                with_topic_ids, first, row_topic, row_size, &section_items[s], &section_length[s],
            )
            used += section_length[s] + tail_max
            if s > 0 and used > group_limit:
                break
            section_list[s] = <int32_t> at_list
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
    """Take rows from ``start`` for as long as they fit; return the position after the last one taken."""
    cdef Py_ssize_t i = start, items = 0, run = 0
    cdef int64_t growth, total = length_size(0, compact)
    cdef int32_t at_topic, current = -1
    cdef int32_t[RUN] size
    # Of rows that lie apart there are hardly ever so many of a topic.
    cdef bint near = grouped and rows[end - 1] - rows[start] < 4 * (end - start)
    while i < end:
        if near and i + RUN <= end and topic[rows[i + RUN - 1]] == current:
            growth = length_size(run + RUN, compact) - length_size(run, compact)
            if add_up(rows, i, current, entry_size, topic, size, &growth) and total + growth <= byte_limit:
                put_run(current, size, i - first, row_topic, row_size)
                run += RUN
                total += growth
                i += RUN
                continue
        if i + AHEAD < rows.shape[0]:
            KFRAME_PREFETCH(&topic[rows[i + AHEAD]])
            KFRAME_PREFETCH(&entry_size[rows[i + AHEAD]])
        at_topic = topic[rows[i]]
        growth = entry_size[rows[i]]
        if grouped and at_topic == current:
            growth += length_size(run + 1, compact) - length_size(run, compact)
        else:
            growth += length_size(items + 1, compact) - length_size(items, compact)
            growth += name_size(name_offsets[at_topic + 1] - name_offsets[at_topic], compact)
            if grouped:
                growth += TOPIC_ID_BYTES * with_topic_ids + length_size(1, compact) + compact
        if i > start and total + growth > byte_limit:
            break
        if grouped and at_topic == current:
            run += 1
        else:
            items += 1
            run = 1
        row_topic[i - first] = current = at_topic
        row_size[i - first] = entry_size[rows[i]]
        total += growth
        i += 1
    outer[0] = <int32_t> items
    length[0] = total
    return i


cdef inline bint add_up(
    const int32_t[::1] rows, Py_ssize_t i, int32_t current, const int32_t[::1] entry_size, const int32_t[::1] topic,
    int32_t* size, int64_t* total,
) noexcept nogil:
    """Note the bytes of RUN entries, and add them to ``total``; return whether all are of topic ``current``."""
    cdef Py_ssize_t k
    cdef int64_t added = 0
    cdef int32_t off = 0
    for k in range(RUN):
        size[k] = entry_size[rows[i + k]]
        added += size[k]
        off |= topic[rows[i + k]] ^ current
    total[0] += added
    return off == 0


cdef inline void put_run(
    int32_t current, const int32_t* size, Py_ssize_t to, int32_t[::1] row_topic, int32_t[::1] row_size,
) noexcept nogil:
    """Write down what ``add_up`` has noted of RUN rows."""
    cdef Py_ssize_t k
    for k in range(RUN):
        row_topic[to + k] = current
        row_size[to + k] = size[k]


def frame_sections(
    const int32_t[::1] section_start,   # IN   (s+1,)
    const int32_t[::1] section_items,   # IN   (s,)    from fit_sections
    const int64_t[::1] section_length,  # IN   (s,)    from fit_sections
    const int64_t[::1] section_at,      # IN   (s+1,)
    const int32_t[::1] row_topic,       # IN   (k,)    from fit_sections
    const int32_t[::1] row_size,        # IN   (k,)    from fit_sections
    const int32_t[::1] name_offsets,    # IN   (t+1,)
    const uint8_t[::1] names,           # IN
    const uint8_t[::1] topic_ids,       # IN   (16t,)
    bint grouped,                       # IN
    bint compact,                       # IN
    bint with_topic_ids,                # IN
    const uint8_t[::1] tail,            # IN           what is put behind each section; nothing if tails differ
    int64_t[::1] entry_at,              # OUT  (k,)    where the entry of ``rows[i]`` goes
    uint8_t[::1] out,                   # OUT          the group; entries are left as they are
):
    """Write sections but for their entries; return how many came out as long as they were measured."""
    cdef Py_ssize_t s = 0, i, stop, end, at
    with nogil:
        for s in range(section_items.shape[0]):
            i = section_start[s]
            end = section_start[s + 1]
            at = put_length(out, section_at[s], section_items[s], compact)
            while i < end:
                stop = run_end(row_topic, i, end) if grouped else i + 1
                at = put_topic(
                    out, at, name_offsets, names, topic_ids, row_topic[i], stop - i, grouped, compact, with_topic_ids
                )
                while i < stop:
                    entry_at[i] = at
                    at += row_size[i]
                    i += 1
                if compact:
                    at = put_int8(out, at, 0)
            if at - section_at[s] != section_length[s]:
                break
            put_bytes(out, at, tail, 0, tail.shape[0])
        else:
            s = section_items.shape[0]
    return s


cdef inline Py_ssize_t run_end(const int32_t[::1] row_topic, Py_ssize_t i, Py_ssize_t end) noexcept nogil:
    """Position after the last row that follows row ``i`` and is of its topic."""
    cdef int32_t current = row_topic[i]
    i += 1
    while i < end and row_topic[i] == current:
        i += 1
    return i


cdef inline Py_ssize_t put_topic(
    uint8_t[::1] out, Py_ssize_t at, const int32_t[::1] name_offsets, const uint8_t[::1] names,
    const uint8_t[::1] topic_ids, Py_ssize_t topic, Py_ssize_t count, bint grouped, bint compact, bint with_topic_ids,
) noexcept nogil:
    """What stands before the ``count`` entries of a topic, or before each entry if they are not grouped."""
    at = put_name(out, at, names, name_offsets[topic], name_offsets[topic + 1] - name_offsets[topic], compact)
    if grouped:
        if with_topic_ids:
            at = put_bytes(out, at, topic_ids, TOPIC_ID_BYTES * topic, TOPIC_ID_BYTES)
        at = put_length(out, at, count, compact)
    return at


def measure_leaders(
    const int32_t[::1] section_start,  # IN   (s+1,)
    const int32_t[::1] rows,           # IN   (k,)
    const broker_t[::1] leader,        # IN   (n,)
    const int32_t[::1] told_size,      # IN   (b,)    bytes that tell of each broker, 0 for one not to be named
    Py_ssize_t most,                   # IN           no more of them lead rows than this, which ends a search early
    bint compact,                      # IN
    int32_t[::1] named,                # OUT  (b,)    last section that names the broker, or -1
    int64_t[::1] tail_length,          # OUT  (s,)    bytes of the array of the section's leaders, and the end of struct
):
    """Measure the tails of LeaderAndIsr requests; return their bytes in all."""
    cdef Py_ssize_t s, b
    cdef int64_t size, total = 0
    with nogil:
        for b in range(named.shape[0]):
            named[b] = -1
        for s in range(tail_length.shape[0]):
            size = 0
            b = name_leaders(rows, section_start[s], section_start[s + 1], leader, told_size, most, s, named, &size)
            tail_length[s] = length_size(b, compact) + size + compact
            total += tail_length[s]
    return total


cdef inline Py_ssize_t name_leaders(
    const int32_t[::1] rows, Py_ssize_t start, Py_ssize_t end, const broker_t[::1] leader,
    const int32_t[::1] told_size, Py_ssize_t most, Py_ssize_t section, int32_t[::1] named, int64_t* size,
) noexcept nogil:
    """Mark the brokers that a section names, and add up their bytes; return how many."""
    cdef Py_ssize_t i = start, stop, found = 0
    cdef int32_t broker
    while i < end and found < most:
        stop = min(i + RUN, end)
        if stop == i + RUN and all_named(rows, i, end, leader, section, named):
            i = stop
            continue
        while i < stop and found < most:
            broker = leader[rows[i]]
            if broker >= 0 and named[broker] != section and told_size[broker] > 0:
                named[broker] = <int32_t> section
                size[0] += told_size[broker]
                found += 1
            i += 1
    return found


cdef inline bint all_named(
    const int32_t[::1] rows, Py_ssize_t i, Py_ssize_t end, const broker_t[::1] leader, Py_ssize_t section,
    const int32_t[::1] named,
) noexcept nogil:
    """Whether each of RUN rows has a leader whom the section names already; asks for the leaders of later rows where
    these rows lie apart."""
    cdef Py_ssize_t k
    cdef broker_t[RUN] led
    cdef broker_t signs = 0
    cdef int32_t fresh = 0
    if rows[i + RUN - 1] - rows[i] >= FAR:
        for k in range(i + AHEAD, min(i + AHEAD + RUN, end)):
            KFRAME_PREFETCH(&leader[rows[k]])
    for k in range(RUN):
        led[k] = leader[rows[i + k]]
        signs |= led[k]
    if signs < 0:
        return False
    for k in range(RUN):
        fresh |= named[led[k]] ^ <int32_t> section
    return fresh == 0


def write_leaders(
    const int32_t[::1] section_start,  # IN   (s+1,)
    const int32_t[::1] rows,           # IN   (k,)
    const broker_t[::1] leader,        # IN   (n,)
    const int32_t[::1] told_size,      # IN   (b,)    as for measure_leaders
    const int32_t[::1] told_brokers,   # IN   (q,)    the brokers that may be named, ascending by id
    const uint8_t[::1] told,           # IN           what tells of them, one after another
    bint compact,                      # IN
    const int64_t[::1] section_at,     # IN   (s+1,)
    const int64_t[::1] tail_length,    # IN   (s,)    from measure_leaders
    int32_t[::1] named,                # OUT  (b,)    last section that names the broker, or -1
    uint8_t[::1] out,                  # OUT          the group
):
    """Write the tails of LeaderAndIsr requests, leaders ascending by id; return how many came out as measured.

    Cost O(k + s * q).
    """
    cdef Py_ssize_t s = 0, b, i, at, told_at, most = told_brokers.shape[0]
    cdef int64_t size = 0
    with nogil:
        for b in range(named.shape[0]):
            named[b] = -1
        for s in range(tail_length.shape[0]):
            b = name_leaders(rows, section_start[s], section_start[s + 1], leader, told_size, most, s, named, &size)
            at = put_length(out, section_at[s + 1] - tail_length[s], b, compact)
            told_at = 0
            for i in range(most):
                b = told_brokers[i]
                if named[b] == s:
                    at = put_bytes(out, at, told, told_at, told_size[b])
                told_at += told_size[b]
            if compact:
                at = put_int8(out, at, 0)
            if at != section_at[s + 1]:
                break
        else:
            s = tail_length.shape[0]
    return s
