"""Reads the lines of a ZooKeeper dump for partitions and their states. Twins: ``reference/znode_lines.py``.

A line of another form is left to msgspec, which reads any form and reports errors.
"""

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memchr

from kframe.kernels.json_text cimport (
    read_integer, read_integers, skip_byte, skip_key, skip_quote, skip_space, skip_string,
)
from kframe.kernels.text cimport follows, is_same, skip_name

# Members of a line, and what its path and its data are.
cdef enum:
    PATH = 1
    DATA = 2
    VERSION = 4
    CZXID = 8
    REQUIRED = PATH | DATA | VERSION | CZXID
    STATE_PATH = 16
    STATE_DATA = 32

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
    Py_ssize_t longest,                  # IN    bytes of the longest line that is read
    int32_t[:, ::1] topics,              # OUT   (m, 3) start and end of a topic's name, and its first state
    int32_t[::1] line,                   # OUT   (k,) index of each state's line
    int32_t[:, ::1] numbers,             # OUT   (6, k) partition, version of the znode, leader, leader epoch,
                                         #       controller epoch, leader recovery state
    int32_t[::1] counts,                 # OUT   (k,) lengths of the ISRs
    int32_t[::1] values,                 # OUT   (v,) broker ids
    int32_t[::1] result,                 # OUT   (3,) lines, topics, states
):
    """Read the states of partitions and skip the znodes above them; return the offset after the last line read.

    It stops at a line of another form, at an incomplete line, and where an array is full. Consecutive states of the
    same topic share a row of ``topics``. Cost O(t).
    """
    cdef Py_ssize_t at = start, end, first, last
    cdef const uint8_t *feed
    cdef Py_ssize_t[2] name
    cdef int32_t lines = 0, names = 0, rows = 0, used = 0, total
    cdef int members
    with nogil:
        name[0], name[1] = 0, 0
        while at < text.shape[0] and rows < line.shape[0] and names < topics.shape[0]:
            feed = <const uint8_t *>memchr(&text[at], 10, text.shape[0] - at)
            if feed == NULL:
                break
            end = feed - &text[0]
            if end + 1 - at > longest:
                break
            total = used
            members = read_line(text[:end], at, name, numbers, rows, values, &total)
            if members < 0:
                break
            if members & STATE_PATH:
                first, last = name[0], name[1]
                if names == 0 or last - first != topics[names - 1, 1] - topics[names - 1, 0] or not is_same(
                    text, first, text, topics[names - 1, 0], last - first
                ):
                    topics[names, 0], topics[names, 1], topics[names, 2] = <int32_t>first, <int32_t>last, rows
                    names += 1
                line[rows], counts[rows] = lines, total - used
                used = total
                rows += 1
            lines += 1
            at = end + 1
        result[0], result[1], result[2] = lines, names, rows
    return at


cdef inline int read_line(
    const uint8_t[::1] text, Py_ssize_t at, Py_ssize_t *name, int32_t[:, ::1] numbers, Py_ssize_t row,
    int32_t[::1] values, int32_t *used,
) noexcept nogil:
    """Read a line up to the end of the text; return its members, -1 for a line of another form."""
    cdef int seen = 0, key = 0
    cdef Py_ssize_t value = 0
    at = skip_byte(text, at, 123, False)
    while at >= 0:
        key = member_at(text, at, &value)
        if value < 0 or seen & key:
            return -1
        seen |= key
        if key == PATH:
            at = read_path(text, value, name, &numbers[PARTITION_ROW, row], &seen)
        elif key == DATA and not follows(text, value, b"null", 4):
            seen |= STATE_DATA
            at = read_state(text, value, numbers, row, values, used)
        elif key == VERSION:
            at = read_integer(text, value, &numbers[VERSION_ROW, row])
        elif key != CZXID or (value < text.shape[0] and 48 <= text[value] <= 57):
            at = skip_value(text, value)
        else:
            return -1
        if at < 0:
            return -1
        at = skip_space(text, at, False)
        if at < text.shape[0] and text[at] == 125:
            break
        at = skip_byte(text, at, 44, False)
    if at < 0 or seen & REQUIRED != REQUIRED or (seen & STATE_PATH == 0) != (seen & STATE_DATA == 0):
        return -1
    return seen if skip_space(text, at + 1, False) == text.shape[0] else -1


cdef inline int member_at(const uint8_t[::1] text, Py_ssize_t at, Py_ssize_t *value) noexcept nogil:
    """The member of a line at an offset, 0 for one that no controller reads; and the offset of its value, or -1."""
    value[0] = skip_key(text, at, b"path", 4, False)
    if value[0] >= 0:
        return PATH
    value[0] = skip_key(text, at, b"data", 4, False)
    if value[0] >= 0:
        return DATA
    value[0] = skip_key(text, at, b"version", 7, False)
    if value[0] >= 0:
        return VERSION
    value[0] = skip_key(text, at, b"czxid", 5, False)
    if value[0] >= 0:
        return CZXID
    value[0] = skip_string(text, at, False)
    if value[0] >= 0:
        value[0] = skip_byte(text, value[0], 58, False)
    return 0


cdef inline Py_ssize_t skip_value(const uint8_t[::1] text, Py_ssize_t at) noexcept nogil:
    """The offset after null, false, true or a number of at most 18 digits."""
    cdef Py_ssize_t start = at
    if follows(text, at, b"null", 4) or follows(text, at, b"true", 4):
        return at + 4
    if follows(text, at, b"false", 5):
        return at + 5
    while at < text.shape[0] and 48 <= text[at] <= 57:
        at += 1
    if at == start or at - start > DIGITS or (text[start] == 48 and at - start > 1):
        return -1
    return at


cdef inline Py_ssize_t read_path(
    const uint8_t[::1] text, Py_ssize_t at, Py_ssize_t *name, int32_t *partition, int *seen,
) noexcept nogil:
    """Read the path of the partitions of a topic, of a partition or of a state."""
    at = skip_quote(text, at, False)
    if at < 0 or not follows(text, at, b"/brokers/topics/", 16):
        return -1
    name[0], name[1] = at + 16, skip_name(text, at + 16)
    at = name[1]
    if at == name[0] or not follows(text, at, b"/partitions", 11):
        return -1
    at += 11
    if follows(text, at, b"/", 1):
        at = read_integer(text, at + 1, partition)
        if at >= 0 and follows(text, at, b"/state", 6):
            seen[0] |= STATE_PATH
            at += 6
    return skip_quote(text, at, False) if at >= 0 else -1


cdef inline Py_ssize_t read_state(
    const uint8_t[::1] text, Py_ssize_t at, int32_t[:, ::1] numbers, Py_ssize_t row, int32_t[::1] values,
    int32_t *used,
) noexcept nogil:
    """Read a state, which is JSON in a string."""
    cdef int seen = 0, key = 0
    cdef Py_ssize_t value = 0
    cdef int32_t schema
    numbers[RECOVERY_ROW, row] = 0
    at = skip_quote(text, at, False)
    if at >= 0:
        at = skip_byte(text, at, 123, True)
    while at >= 0:
        key = state_member_at(text, at, &value)
        if value < 0 or seen & key:
            return -1
        seen |= key
        if key == ISR:
            at = read_integers(text, value, values, used, True)
        elif key == LEADER and follows(text, value, b"-1", 2):
            numbers[LEADER_ROW, row] = -1
            at = value + 2
        else:
            at = read_integer(text, value, &schema)
            if at < 0 or (key == RECOVERY and schema > 1):
                return -1
            if key != SCHEMA:
                numbers[number_row(key), row] = schema
        at = skip_space(text, at, True) if at >= 0 else -1
        if 0 <= at < text.shape[0] and text[at] == 125:
            break
        at = skip_byte(text, at, 44, True) if at >= 0 else -1
    if at < 0 or seen & STATE != STATE:
        return -1
    return skip_quote(text, skip_space(text, at + 1, True), False)


cdef inline int number_row(int key) noexcept nogil:
    if key == LEADER:
        return LEADER_ROW
    if key == LEADER_EPOCH:
        return LEADER_EPOCH_ROW
    return CONTROLLER_EPOCH_ROW if key == CONTROLLER_EPOCH else RECOVERY_ROW


cdef inline int state_member_at(const uint8_t[::1] text, Py_ssize_t at, Py_ssize_t *value) noexcept nogil:
    """The member of a state at an offset, and the offset of its value; -1 for any other."""
    value[0] = skip_key(text, at, b"controller_epoch", 16, True)
    if value[0] >= 0:
        return CONTROLLER_EPOCH
    value[0] = skip_key(text, at, b"leader", 6, True)
    if value[0] >= 0:
        return LEADER
    value[0] = skip_key(text, at, b"version", 7, True)
    if value[0] >= 0:
        return SCHEMA
    value[0] = skip_key(text, at, b"leader_epoch", 12, True)
    if value[0] >= 0:
        return LEADER_EPOCH
    value[0] = skip_key(text, at, b"isr", 3, True)
    if value[0] >= 0:
        return ISR
    value[0] = skip_key(text, at, b"leader_recovery_state", 21, True)
    return RECOVERY
