"""Kernels that read ZooKeeper's answers to multi requests: results told apart, and the JSON of states into columns.

Layouts are those of ZooKeeper 3.8's ``zookeeper.jute``; see ``_jute_write.pyx``. The state's JSON is that of
``kafka.zk.TopicPartitionStateZNode`` (Kafka 3.9), in any order of its keys.

What comes from outside is never trusted: every read is checked against the end of the answer, every number against
int32, every OUT against its length. Otherwise the house rules of ``kframe/_core.pyx`` hold, and there is a twin of the
same name and signature in ``_naive_jute.py``. Arguments that recur: ``reply`` and ``start``, an answer and where its
first result begins. Cost is linear in the bytes read.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from kframe_zookeeper.json_bytes cimport Text, begin_key, end_key, same, stands_in, take_byte, take_int32

cdef enum:
    # Operations, as the headers of results number them.
    ERROR = -1
    CREATE = 1
    DELETE = 2
    GET_DATA = 4
    SET_DATA = 5
    GET_CHILDREN = 8
    CHECK = 13

cdef enum:
    STAT_BYTES = 68
    HEADER_BYTES = 9
    # No longer ISR is read here: looking for repeated members takes the square of it.
    ISR_MOST = 64

cdef enum:
    # Bits of the keys that a state's JSON has.
    LEADER = 1
    LEADER_EPOCH = 2
    CONTROLLER_EPOCH = 4
    ISR = 8
    VERSION = 16
    RECOVERY = 32
    NECESSARY = 31


cdef inline int32_t int32_at(const uint8_t* data) noexcept nogil:
    return <int32_t> (<uint32_t> data[0] << 24 | <uint32_t> data[1] << 16 | <uint32_t> data[2] << 8 | data[3])


cdef inline int64_t int64_at(const uint8_t* data) noexcept nogil:
    return <int64_t> int32_at(data) << 32 | <uint32_t> int32_at(data + 4)


cdef inline bint take_length(Text* text, Py_ssize_t* length) noexcept nogil:
    """Step over an int32 length and what it measures; false if that ends behind the answer."""
    if text.end - text.at < 4:
        return False
    length[0] = int32_at(text.data + text.at)
    text.at += 4
    if length[0] > 0:
        if text.end - text.at < length[0]:
            return False
        text.at += length[0]
    return True


cdef inline bint take_children(Text* text) noexcept nogil:
    """Step over a list of names."""
    cdef Py_ssize_t length
    cdef int32_t left
    if text.end - text.at < 4:
        return False
    left = int32_at(text.data + text.at)
    text.at += 4
    while left > 0:
        if not take_length(text, &length):
            return False
        left -= 1
    return True


def split_reads(
    const uint8_t[::1] reply,  # IN   (bytes,)
    Py_ssize_t start,          # IN
    int32_t[::1] code,         # OUT  (k,)  0, or ZooKeeper's error
    int64_t[::1] data_at,      # OUT  (k,)  where the data, or the list of children with its length, begins
    int32_t[::1] data_length,  # OUT  (k,)  bytes of it; -1: null
    int32_t[::1] version,      # OUT  (k,)  version of the data; -1 where code is not 0 or for children
    int64_t[::1] czxid,        # OUT  (k,)  likewise: the transaction that created it,
    int64_t[::1] mzxid,        # OUT  (k,)  that wrote it last,
    int64_t[::1] owner,        # OUT  (k,)  and the session that it is ephemeral in, or 0
):
    """Find the results of a multiRead of ``k`` operations; return how many there were, -1 if they make no sense."""
    cdef Py_ssize_t count = 0, length = 0, mark, most = code.shape[0]
    cdef int32_t operation
    cdef Text text = Text(NULL, start, reply.shape[0])
    if not 0 <= start < reply.shape[0]:
        return -1
    text.data = &reply[0]
    with nogil:
        while text.end - text.at >= HEADER_BYTES:
            operation = int32_at(text.data + text.at)
            if text.data[text.at + 4]:
                break
            text.at += HEADER_BYTES
            if count == most:
                count = -1
                break
            code[count], version[count], mark = 0, -1, text.at + 4
            czxid[count] = mzxid[count] = owner[count] = -1
            if operation == GET_DATA and take_length(&text, &length) and text.end - text.at >= STAT_BYTES:
                czxid[count] = int64_at(text.data + text.at)
                mzxid[count] = int64_at(text.data + text.at + 8)
                version[count] = int32_at(text.data + text.at + 32)
                owner[count] = int64_at(text.data + text.at + 44)
                text.at += STAT_BYTES
            elif operation == ERROR and text.end - text.at >= 4:
                code[count] = int32_at(text.data + text.at)
                text.at += 4
                length = -1
            elif operation == GET_CHILDREN and take_children(&text):
                mark -= 4
                length = text.at - mark
            else:
                count = -1
                break
            data_at[count], data_length[count] = mark, <int32_t> length
            count += 1
        else:
            count = -1
    return count


def split_results(
    const uint8_t[::1] reply,  # IN   (bytes,)
    Py_ssize_t start,          # IN
    int32_t[::1] code,         # OUT  (k,)  0, or ZooKeeper's error
    int32_t[::1] version,      # OUT  (k,)  version after a setData; 0 where there is none
    int64_t[::1] mzxid,        # OUT  (k,)  its transaction; -1 where there is none
):
    """Find the results of a multi of ``k`` operations; return how many there were, -1 if they make no sense."""
    cdef Py_ssize_t count = 0, length = 0, most = code.shape[0]
    cdef int32_t operation
    cdef Text text = Text(NULL, start, reply.shape[0])
    if not 0 <= start < reply.shape[0]:
        return -1
    text.data = &reply[0]
    with nogil:
        while text.end - text.at >= HEADER_BYTES:
            operation = int32_at(text.data + text.at)
            if text.data[text.at + 4]:
                break
            text.at += HEADER_BYTES
            if count == most:
                count = -1
                break
            code[count] = version[count] = 0
            mzxid[count] = -1
            if operation == SET_DATA and text.end - text.at >= STAT_BYTES:
                mzxid[count] = int64_at(text.data + text.at + 8)
                version[count] = int32_at(text.data + text.at + 32)
                text.at += STAT_BYTES
            elif operation == ERROR and text.end - text.at >= 4:
                code[count] = int32_at(text.data + text.at)
                text.at += 4
            elif not (operation == CHECK or operation == DELETE or operation == CREATE and take_length(&text, &length)):
                count = -1
                break
            count += 1
        else:
            count = -1
    return count


cdef inline int take_key(Text* text) noexcept nogil:
    """Step over a key with its colon; return its bit, 0 if it is none of a state's."""
    cdef Py_ssize_t length = begin_key(text)
    cdef int key = 0
    if length < 0:
        return 0
    if same(text, length, b"leader"):
        key = LEADER
    elif same(text, length, b"leader_epoch"):
        key = LEADER_EPOCH
    elif same(text, length, b"controller_epoch"):
        key = CONTROLLER_EPOCH
    elif same(text, length, b"isr"):
        key = ISR
    elif same(text, length, b"version"):
        key = VERSION
    elif same(text, length, b"leader_recovery_state"):
        key = RECOVERY
    return key if end_key(text, length) else 0


cdef inline Py_ssize_t take_list(Text* text, int32_t[::1] isr, Py_ssize_t first) noexcept nogil:
    """Step over a list of different broker ids and put it into ``isr`` from ``first``; return its end, or -1."""
    cdef Py_ssize_t at = first
    if not take_byte(text, 91):
        return -1
    if take_byte(text, 93):
        return at
    while True:
        if at == isr.shape[0] or at - first == ISR_MOST or not take_int32(text, &isr[at]):
            return -1
        if isr[at] < 0 or stands_in(isr[at], isr, first, at):
            return -1
        at += 1
        if take_byte(text, 93):
            return at
        if not take_byte(text, 44):
            return -1


def parse_states(
    const uint8_t[::1] reply,        # IN   (bytes,)
    const int64_t[::1] data_at,      # IN   (k,)  where each JSON begins
    const int32_t[::1] data_length,  # IN   (k,)  its bytes; none where not positive
    int32_t[::1] leader,             # OUT  (k,)  broker id or -1; undefined, as what follows, where not parsed
    int32_t[::1] leader_epoch,       # OUT  (k,)
    int32_t[::1] controller_epoch,   # OUT  (k,)
    uint8_t[::1] recovery,           # OUT  (k,)  1 while recovering
    int32_t[::1] isr_count,          # OUT  (k,)  0 where not parsed
    int32_t[::1] isr,                # OUT  (values,)  broker ids, row after row
    uint8_t[::1] parsed,             # OUT  (k,)  1 where the JSON is as Kafka writes it
):
    """Read states, each key once and nothing else, numbers within int32; return how many ISR members there are.

    What is unusual in any way (other keys, escapes, another version, repeated members) is left to the strict decoder.
    """
    cdef Py_ssize_t i, end, at = 0
    cdef int32_t numbers[64]
    cdef int seen, key
    cdef Text text = Text(NULL, 0, 0)
    if reply.shape[0]:
        text.data = &reply[0]
    with nogil:
        for i in range(data_at.shape[0]):
            parsed[i], isr_count[i], seen, end = 0, 0, 0, at
            if data_length[i] <= 0 or data_at[i] < 0 or data_at[i] + data_length[i] > reply.shape[0]:
                continue
            text.at, text.end, numbers[RECOVERY] = data_at[i], data_at[i] + data_length[i], 0
            if not take_byte(&text, 123):
                continue
            while True:
                key = take_key(&text)
                if key == 0 or seen & key:
                    break
                seen |= key
                if key == ISR:
                    end = take_list(&text, isr, at)
                    if end < 0:
                        break
                elif not take_int32(&text, &numbers[key]):
                    break
                if take_byte(&text, 125):
                    parsed[i] = text.at == text.end and seen & NECESSARY == NECESSARY and numbers[VERSION] == 1 and \
                        numbers[LEADER] >= -1 and 0 <= numbers[RECOVERY] <= 1 and numbers[LEADER_EPOCH] >= 0 and \
                        numbers[CONTROLLER_EPOCH] >= 0
                    break
                if not take_byte(&text, 44):
                    break
            if parsed[i]:
                leader[i], leader_epoch[i] = numbers[LEADER], numbers[LEADER_EPOCH]
                controller_epoch[i], recovery[i] = numbers[CONTROLLER_EPOCH], <uint8_t> numbers[RECOVERY]
                isr_count[i], at = <int32_t> (end - at), end
    return at
