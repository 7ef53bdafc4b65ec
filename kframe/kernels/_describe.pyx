"""Reads the lines that ``kafka-topics --describe`` prints for topics and partitions.

A line that has another form is left to ``kframe.snapshot.describe``, which reads any form and reports errors.
Reference: ``reference/describe.py``.
"""

from libc.stdint cimport int32_t, uint8_t

from kframe.kernels.text cimport follows, is_same, read_digits, skip_blanks, skip_name

# Positions of the labels in the mask of a row: the lists, then Partition and Leader.
cdef enum:
    REPLICAS = 0
    ISR = 1
    ADDING_LIST = 2
    REMOVING_LIST = 3
    ELR = 4
    LAST_KNOWN_ELR = 5
    OFFLINE = 6
    LISTS = 7
    PARTITION = 7
    LEADER = 8
    REQUIRED = 1 << REPLICAS | 1 << ISR | 1 << PARTITION | 1 << LEADER
    NO_ELR = 1 << 9


def read_describe_lines(
    const uint8_t[::1] text,             # IN    lines, of which the last may be incomplete
    Py_ssize_t start,                    # IN    offset of the first line
    Py_ssize_t max_line_bytes,           # IN    bytes of the longest line that is read
    const uint8_t[::1] topic,            # IN    topic of the partitions that come first; empty: none
    int32_t[:, ::1] headers,             # OUT   (h, 6) lines of topics: offset, end, index, offset and end of the name,
                                         #       and partitions before it
    int32_t[::1] line,                   # OUT   (k,) index of each partition's line
    int32_t[::1] partition,              # OUT   (k,)
    int32_t[::1] leader,                 # OUT   (k,) broker id; -1 for none
    int32_t[::1] masks,                  # OUT   (k,) labels, and bit 9: the cluster does not report the ELR
    int32_t[:, ::1] counts,              # OUT   (7, k) lengths of the lists, in the order of the labels above
    int32_t[:, ::1] values,              # OUT   (7, v) broker ids
    int32_t[::1] result,                 # OUT   (3,) lines, topics, partitions
):
    """Read the lines of topics and partitions; return the offset after the last line read.

    It stops at a line of another form, at an incomplete line, and where an array is full. A topic's line is not read
    but listed. Cost O(t).
    """
    cdef Py_ssize_t offset = start, name, end, after
    cdef Py_ssize_t topic_start = 0, topic_length = topic.shape[0]
    cdef int32_t topics = 0, rows = 0, lines = 0
    cdef int32_t[7] used
    cdef bint from_text = False
    with nogil:
        used[:] = [0, 0, 0, 0, 0, 0, 0]
        while rows < line.shape[0] and topics < headers.shape[0]:
            name = skip_blanks(text, offset)
            if not follows(text, name, b"Topic:", 6):
                break
            name = skip_blanks(text, name + 6)
            end = skip_name(text, name)
            after = skip_blanks(text, end)
            if end == name or after == end:
                break
            if follows(text, after, b"TopicId:", 8) or follows(text, after, b"PartitionCount:", 15):
                after = skip_line(text, after)
                if after < 0 or after - offset > max_line_bytes:
                    break
                headers[topics, 0], headers[topics, 1] = <int32_t>offset, <int32_t>after
                headers[topics, 2], headers[topics, 5] = lines, rows
                headers[topics, 3], headers[topics, 4] = <int32_t>name, <int32_t>end
                topics += 1
                topic_start, topic_length, from_text = name, end - name, True
            else:
                if end - name != topic_length:
                    break
                if not (is_same(text, name, text, topic_start, end - name) if from_text
                        else is_same(text, name, topic, 0, end - name)):
                    break
                after = read_row(text, after, rows, partition, leader, masks, counts, values, used)
                if after < 0 or after - offset > max_line_bytes:
                    break
                line[rows] = lines
                rows += 1
            offset = after
            lines += 1
        result[0], result[1], result[2] = lines, topics, rows
    return offset


cdef inline Py_ssize_t skip_line(const uint8_t[::1] text, Py_ssize_t offset) noexcept nogil:
    while offset < text.shape[0]:
        if text[offset] == 10:
            return offset + 1
        offset += 1
    return -1


cdef inline Py_ssize_t read_row(
    const uint8_t[::1] text, Py_ssize_t offset, Py_ssize_t row, int32_t[::1] partition, int32_t[::1] leader,
    int32_t[::1] masks, int32_t[:, ::1] counts, int32_t[:, ::1] values, int32_t *used,
) noexcept nogil:
    """Read the fields after the topic into ``row``; return the offset after the line. ``used`` are values of lists."""
    cdef int label = 0, k
    cdef Py_ssize_t after = 0, value
    cdef int32_t labels = 0
    cdef int32_t[7] ends
    for k in range(LISTS):
        ends[k] = used[k]
        counts[k, row] = 0
    while offset < text.shape[0] and text[offset] != 10:
        if text[offset] == 13 and follows(text, offset, b"\r\n", 2):
            offset += 1
            break
        label = label_at(text, offset, &after)
        if label < 0 or labels & 1 << label:
            return -1
        labels |= 1 << label
        value = skip_blanks(text, after)
        if label == PARTITION:
            offset = read_digits(text, value, &partition[row])
        elif label == LEADER:
            offset = read_leader(text, value, &leader[row])
        elif label >= ADDING_LIST and follows(text, value, b"N/A", 3):
            offset = value + 3
            labels |= NO_ELR if label == ELR else 0
        else:
            offset = read_list(text, value, values, label, &ends[label])
            counts[label, row] = ends[label] - used[label]
        if offset < 0:
            return -1
        value = skip_blanks(text, offset)
        # A blank is before each label: after the value, or where there is no value after the label.
        if value < text.shape[0] and text[value] != 10 and text[value] != 13 and text[value - 1] > 32:
            return -1
        offset = value
    if offset >= text.shape[0] or (labels & REQUIRED) != REQUIRED:
        return -1
    for k in range(LISTS):
        used[k] = ends[k]
    masks[row] = labels
    return offset + 1


cdef inline Py_ssize_t read_leader(const uint8_t[::1] text, Py_ssize_t offset, int32_t *leader) noexcept nogil:
    leader[0] = -1
    if follows(text, offset, b"none", 4):
        return offset + 4
    if follows(text, offset, b"-1", 2):
        return offset + 2
    return read_digits(text, offset, leader)


cdef inline Py_ssize_t read_list(
    const uint8_t[::1] text, Py_ssize_t offset, int32_t[:, ::1] values, Py_ssize_t label, int32_t *count,
) noexcept nogil:
    """Append broker ids, separated by commas; none if no digit follows."""
    if offset >= text.shape[0] or not 48 <= text[offset] <= 57:
        return offset
    while count[0] < values.shape[1]:
        offset = read_digits(text, offset, &values[label, count[0]])
        count[0] += 1
        if offset < 0 or offset >= text.shape[0] or text[offset] != 44:
            return offset
        offset += 1
    return -1


cdef inline int label_at(const uint8_t[::1] text, Py_ssize_t offset, Py_ssize_t *after) noexcept nogil:
    """The label at an offset, and the offset after its colon; -1 if there is none."""
    if follows(text, offset, b"Replicas:", 9):
        after[0] = offset + 9
        return REPLICAS
    if follows(text, offset, b"Isr:", 4):
        after[0] = offset + 4
        return ISR
    if follows(text, offset, b"Partition:", 10):
        after[0] = offset + 10
        return PARTITION
    if follows(text, offset, b"Leader:", 7):
        after[0] = offset + 7
        return LEADER
    if follows(text, offset, b"Elr:", 4):
        after[0] = offset + 4
        return ELR
    if follows(text, offset, b"LastKnownElr:", 13):
        after[0] = offset + 13
        return LAST_KNOWN_ELR
    if follows(text, offset, b"Adding Replicas:", 16):
        after[0] = offset + 16
        return ADDING_LIST
    if follows(text, offset, b"Removing Replicas:", 18):
        after[0] = offset + 18
        return REMOVING_LIST
    if follows(text, offset, b"Offline:", 8):
        after[0] = offset + 8
        return OFFLINE
    return -1
