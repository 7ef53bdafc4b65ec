"""Reads the lines of a ZooKeeper dump for topics, partitions and states. Reference: ``reference/znode_lines.py``.

A line of another form is left to msgspec, which reads any form and reports errors.
"""

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memchr

from kframe.kernels.json_text cimport (
    is_key, other_key, read_integer, read_integers, skip_byte, skip_quote, skip_space,
)
from kframe.kernels.text cimport follows, is_same, skip_name
from kframe.kernels.topic_znode cimport read_topic

# Members of a line, and what its path and its data are.
cdef enum:
    PATH = 1
    DATA = 2
    VERSION = 4
    CZXID = 8
    REQUIRED = PATH | DATA | VERSION | CZXID
    STATE_PATH = 16
    TOPIC_PATH = 32
    STATE_DATA = 64
    TOPIC_DATA = 128
    PATHS = STATE_PATH | TOPIC_PATH

# What the lines of a group are.
cdef enum:
    OTHER = 0
    TOPIC = 1
    STATES = 2

# Columns of ``groups``.
cdef enum:
    KIND = 0
    FIRST_LINE = 1
    START = 2
    NAME = 3
    NAME_END = 4
    ID = 5
    COUNT = 6

# Members of a state.
cdef enum:
    CONTROLLER_EPOCH = 1
    LEADER = 2
    LEADER_EPOCH = 4
    ISR = 8
    STATE = CONTROLLER_EPOCH | LEADER | LEADER_EPOCH | ISR
    RECOVERY = 16
    SCHEMA = 32

# Rows of ``numbers``.
cdef enum:
    PARTITION_ROW = 0
    VERSION_ROW = 1
    LEADER_ROW = 2
    LEADER_EPOCH_ROW = 3
    CONTROLLER_EPOCH_ROW = 4
    RECOVERY_ROW = 5

# The most digits of a number that is read and not stored.
cdef enum:
    DIGITS = 18


def read_znode_lines(
    const uint8_t[::1] text,             # IN    lines, of which the last may be incomplete
    Py_ssize_t start,                    # IN    offset of the first line
    Py_ssize_t max_line_bytes,           # IN    bytes of the longest line that is read
    int32_t[:, ::1] groups,              # OUT   (g, 7) kind, index and offset of its (first) line, start and end of the
                                         #       topic's name, offset of its id (-1: none), partitions or states
    int32_t[:, ::1] assigned,            # OUT   (3, p) partitions of topics, numbers of replicas; zeros are scratch
    int32_t[::1] replicas,               # OUT   (r,) broker ids
    int32_t[::1] line,                   # OUT   (k,) index of each state's line
    int32_t[:, ::1] numbers,             # OUT   (6, k) partition, version of the znode, leader, leader epoch,
                                         #       controller epoch, leader recovery state
    int32_t[::1] counts,                 # OUT   (k,) lengths of the ISRs
    int32_t[::1] values,                 # OUT   (v,) broker ids
    int32_t[::1] result,                 # OUT   (4,) lines, groups, assigned partitions, states
):
    """Read topics and states, and skip the znodes between them; return the offset after the last line read.

    A group is a topic, consecutive states of a topic, or another line of a JSON object, which is not read but listed.
    It stops at any other line, at an incomplete line, and where an array is full. Cost O(t).
    """
    cdef Py_ssize_t offset = start, end
    cdef const uint8_t *newline
    cdef int32_t[3] name
    cdef int32_t[2] used
    cdef int32_t[2] total
    cdef int32_t lines = 0, group_count = 0, rows = 0, isrs = 0, isr_end
    cdef int members
    with nogil:
        used[0], used[1] = 0, 0
        while offset < text.shape[0] and rows < line.shape[0] and group_count < groups.shape[0]:
            newline = <const uint8_t *>memchr(&text[offset], 10, text.shape[0] - offset)
            if newline == NULL:
                break
            end = newline - &text[0]
            if end + 1 - offset > max_line_bytes:
                break
            name[0], name[1], name[2], isr_end = 0, 0, -1, isrs
            total[0], total[1] = used[0], used[1]
            members = read_line(text[:end], offset, name, assigned, replicas, total, numbers, rows, values, &isr_end)
            if members < 0 and text[offset] != 123:
                break
            if members < 0:
                name[0], name[1], name[2] = 0, 0, -1
                group_count += add_group(groups, group_count, OTHER, lines, offset, name, 0)
            elif members & TOPIC_PATH:
                group_count += add_group(groups, group_count, TOPIC, lines, offset, name, total[0] - used[0])
                used[0], used[1] = total[0], total[1]
            elif members & STATE_PATH:
                if is_of_group(text, groups, group_count, name):
                    groups[group_count - 1, COUNT] += 1
                else:
                    group_count += add_group(groups, group_count, STATES, lines, offset, name, 1)
                line[rows], counts[rows] = lines, isr_end - isrs
                isrs, rows = isr_end, rows + 1
            lines, offset = lines + 1, end + 1
        result[0], result[1], result[2], result[3] = lines, group_count, used[0], rows
    return offset


cdef inline int add_group(
    int32_t[:, ::1] groups, Py_ssize_t row, int kind, int32_t line, Py_ssize_t offset, int32_t *name, int32_t count,
) noexcept nogil:
    """Set a row of ``groups``; return 1. ``name`` has the start and the end of the name, and the offset of the id."""
    groups[row, KIND], groups[row, FIRST_LINE], groups[row, START] = kind, line, <int32_t>offset
    groups[row, NAME], groups[row, NAME_END], groups[row, ID] = name[0], name[1], name[2]
    groups[row, COUNT] = count
    return 1


cdef inline bint is_of_group(
    const uint8_t[::1] text, int32_t[:, ::1] groups, Py_ssize_t group_count, int32_t *name,
) noexcept nogil:
    """Whether the last group has states of the topic with this name."""
    cdef Py_ssize_t row = group_count - 1, length = name[1] - name[0]
    if row < 0 or groups[row, KIND] != STATES or groups[row, NAME_END] - groups[row, NAME] != length:
        return False
    return is_same(text, name[0], text, groups[row, NAME], length)


cdef inline int read_line(
    const uint8_t[::1] text, Py_ssize_t offset, int32_t *name, int32_t[:, ::1] assigned, int32_t[::1] replicas,
    int32_t *used, int32_t[:, ::1] numbers, Py_ssize_t row, int32_t[::1] values, int32_t *isr_end,
) noexcept nogil:
    """Read a line up to the end of the text; return its members, -1 for a line of another form."""
    cdef int members = 0, key = 0
    cdef Py_ssize_t value = 0
    offset = skip_byte(text, offset, 123, False)
    while offset >= 0:
        key = member_at(text, offset, &value)
        if value < 0 or members & key:
            return -1
        members |= key
        if key == PATH:
            offset = read_path(text, value, name, &numbers[PARTITION_ROW, row], &members)
        elif key == DATA and not follows(text, value, b"null", 4):
            members |= TOPIC_DATA if members & TOPIC_PATH else STATE_DATA
            offset = (
                read_topic(text, value, assigned, replicas, used, &name[2]) if members & TOPIC_PATH
                else read_state(text, value, numbers, row, values, isr_end)
            )
        elif key == VERSION:
            offset = read_integer(text, value, &numbers[VERSION_ROW, row])
        elif key != CZXID or (value < text.shape[0] and 48 <= text[value] <= 57):
            offset = skip_value(text, value)
        else:
            return -1
        if offset < 0:
            return -1
        offset = skip_space(text, offset, False)
        if offset < text.shape[0] and text[offset] == 125:
            break
        offset = skip_byte(text, offset, 44, False)
    if offset < 0 or members & REQUIRED != REQUIRED or members & PATHS != members >> 2 & PATHS:
        return -1
    return members if skip_space(text, offset + 1, False) == text.shape[0] else -1


cdef inline int member_at(const uint8_t[::1] text, Py_ssize_t offset, Py_ssize_t *value) noexcept nogil:
    """The member of a line at an offset, 0 for one that no controller reads; and the offset of its value, or -1."""
    if is_key(text, offset, b"path", value, False):
        return PATH
    if is_key(text, offset, b"data", value, False):
        return DATA
    if is_key(text, offset, b"version", value, False):
        return VERSION
    if is_key(text, offset, b"czxid", value, False):
        return CZXID
    return other_key(text, offset, value, False)


cdef inline Py_ssize_t skip_value(const uint8_t[::1] text, Py_ssize_t offset) noexcept nogil:
    """The offset after null, false, true or a number of at most 18 digits."""
    cdef Py_ssize_t start = offset
    if follows(text, offset, b"null", 4) or follows(text, offset, b"true", 4):
        return offset + 4
    if follows(text, offset, b"false", 5):
        return offset + 5
    while offset < text.shape[0] and 48 <= text[offset] <= 57:
        offset += 1
    if offset == start or offset - start > DIGITS or (text[start] == 48 and offset - start > 1):
        return -1
    return offset


cdef inline Py_ssize_t read_path(
    const uint8_t[::1] text, Py_ssize_t offset, int32_t *name, int32_t *partition, int *members,
) noexcept nogil:
    """Read the path of a topic, of its partitions, of a partition or of a state."""
    offset = skip_quote(text, offset, False)
    if offset < 0 or not follows(text, offset, b"/brokers/topics/", 16):
        return -1
    offset += 16
    name[0], name[1] = <int32_t>offset, <int32_t>skip_name(text, offset)
    offset = name[1]
    if offset == name[0]:
        return -1
    if not follows(text, offset, b"/partitions", 11):
        members[0] |= TOPIC_PATH
        return skip_quote(text, offset, False)
    offset += 11
    if follows(text, offset, b"/", 1):
        offset = read_integer(text, offset + 1, partition)
        if offset >= 0 and follows(text, offset, b"/state", 6):
            members[0] |= STATE_PATH
            offset += 6
    return skip_quote(text, offset, False) if offset >= 0 else -1


cdef inline Py_ssize_t read_state(
    const uint8_t[::1] text, Py_ssize_t offset, int32_t[:, ::1] numbers, Py_ssize_t row, int32_t[::1] values,
    int32_t *used,
) noexcept nogil:
    """Read a state, which is JSON in a string."""
    cdef int members = 0, key = 0
    cdef Py_ssize_t value = 0
    cdef int32_t schema
    numbers[RECOVERY_ROW, row] = 0
    offset = skip_quote(text, offset, False)
    if offset >= 0:
        offset = skip_byte(text, offset, 123, True)
    while offset >= 0:
        key = state_member_at(text, offset, &value)
        if key == 0 or members & key:
            return -1
        members |= key
        if key == ISR:
            offset = read_integers(text, value, values, used, True)
        elif key == LEADER and follows(text, value, b"-1", 2):
            numbers[LEADER_ROW, row] = -1
            offset = value + 2
        else:
            offset = read_integer(text, value, &schema)
            if offset < 0 or (key == RECOVERY and schema > 1):
                return -1
            if key != SCHEMA:
                numbers[number_row(key), row] = schema
        offset = skip_space(text, offset, True) if offset >= 0 else -1
        if 0 <= offset < text.shape[0] and text[offset] == 125:
            break
        offset = skip_byte(text, offset, 44, True) if offset >= 0 else -1
    if offset < 0 or members & STATE != STATE:
        return -1
    return skip_quote(text, skip_space(text, offset + 1, True), False)


cdef inline int number_row(int key) noexcept nogil:
    if key == LEADER:
        return LEADER_ROW
    if key == LEADER_EPOCH:
        return LEADER_EPOCH_ROW
    return CONTROLLER_EPOCH_ROW if key == CONTROLLER_EPOCH else RECOVERY_ROW


cdef inline int state_member_at(const uint8_t[::1] text, Py_ssize_t offset, Py_ssize_t *value) noexcept nogil:
    """The member of a state at an offset, and the offset of its value; 0 for any other."""
    if is_key(text, offset, b"controller_epoch", value, True):
        return CONTROLLER_EPOCH
    if is_key(text, offset, b"leader", value, True):
        return LEADER
    if is_key(text, offset, b"version", value, True):
        return SCHEMA
    if is_key(text, offset, b"leader_epoch", value, True):
        return LEADER_EPOCH
    if is_key(text, offset, b"isr", value, True):
        return ISR
    if is_key(text, offset, b"leader_recovery_state", value, True):
        return RECOVERY
    return 0
