"""Parse ZooKeeper's responses to multi requests: split the results, and decode the JSON of states into columns.

The layouts are those of ZooKeeper 3.8's ``zookeeper.jute``; see ``_jute_write.pyx``. The JSON of a state is that of
``kafka.zk.TopicPartitionStateZNode`` (Kafka 3.9), with its keys in any order.

The input is untrusted. Every read is checked against the end of the response, every number against int32, and every OUT
against its length. Otherwise the rules of ``kframe/_core.pyx`` apply. ``verification/reference/jute.py`` has a
reference implementation with the same names and signatures.

Common arguments: ``reply`` is a response, and ``start`` the offset of its first result. The cost is linear in the bytes
read.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from kframe_zookeeper.kernels.json_bytes cimport Text, begin_key, contains, end_key, equals, take_byte, take_int32

cdef enum:
    # Operation codes in the headers of results.
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
    # Longer ISRs are left to the decoder: the search for repeated members takes quadratic time.
    ISR_MAX = 64

cdef enum:
    # Bits of the keys in the JSON of a state.
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
    """Skip an int32 length and that many bytes. Return false if they end behind the response."""
    if text.end - text.offset < 4:
        return False
    length[0] = int32_at(text.data + text.offset)
    text.offset += 4
    if length[0] > 0:
        if text.end - text.offset < length[0]:
            return False
        text.offset += length[0]
    return True


cdef inline bint take_children(Text* text) noexcept nogil:
    """Skip a list of names."""
    cdef Py_ssize_t length
    cdef int32_t remaining
    if text.end - text.offset < 4:
        return False
    remaining = int32_at(text.data + text.offset)
    text.offset += 4
    while remaining > 0:
        if not take_length(text, &length):
            return False
        remaining -= 1
    return True


def split_reads(
    const uint8_t[::1] reply,  # IN   (bytes,)
    Py_ssize_t start,          # IN
    int32_t[::1] code,         # OUT  (k,)  0, or ZooKeeper's error
    int64_t[::1] data_offset,  # OUT  (k,)  where the data, or the list of children with its length, begins
    int32_t[::1] data_length,  # OUT  (k,)  bytes of it; -1: null
    int32_t[::1] version,      # OUT  (k,)  version of the data; -1 where code is not 0 or for children
    int64_t[::1] czxid,        # OUT  (k,)  likewise: the transaction that created it,
    int64_t[::1] mzxid,        # OUT  (k,)  that wrote it last,
    int64_t[::1] owner,        # OUT  (k,)  and the session that it is ephemeral in, or 0
):
    """Locate the results of a multiRead of ``k`` operations. Return their number, or -1 for a malformed response."""
    cdef Py_ssize_t count = 0, length = 0, mark, count_max = code.shape[0]
    cdef int32_t operation
    cdef Text text = Text(NULL, start, reply.shape[0])
    if not 0 <= start < reply.shape[0]:
        return -1
    text.data = &reply[0]
    with nogil:
        while text.end - text.offset >= HEADER_BYTES:
            operation = int32_at(text.data + text.offset)
            if text.data[text.offset + 4]:
                break
            text.offset += HEADER_BYTES
            if count == count_max:
                count = -1
                break
            code[count], version[count], mark = 0, -1, text.offset + 4
            czxid[count] = mzxid[count] = owner[count] = -1
            if operation == GET_DATA and take_length(&text, &length) and text.end - text.offset >= STAT_BYTES:
                czxid[count] = int64_at(text.data + text.offset)
                mzxid[count] = int64_at(text.data + text.offset + 8)
                version[count] = int32_at(text.data + text.offset + 32)
                owner[count] = int64_at(text.data + text.offset + 44)
                text.offset += STAT_BYTES
            elif operation == ERROR and text.end - text.offset >= 4:
                code[count] = int32_at(text.data + text.offset)
                text.offset += 4
                length = -1
            elif operation == GET_CHILDREN and take_children(&text):
                mark -= 4
                length = text.offset - mark
            else:
                count = -1
                break
            data_offset[count], data_length[count] = mark, <int32_t> length
            count += 1
        else:
            count = -1
    return count


def split_results(
    const uint8_t[::1] reply,  # IN   (bytes,)
    Py_ssize_t start,          # IN
    int32_t[::1] code,         # OUT  (k,)  0, or ZooKeeper's error
    int32_t[::1] version,      # OUT  (k,)  version after a setData; 0 where there is none
):
    """Locate the results of a multi of ``k`` operations. Return their number, or -1 if the response is malformed."""
    cdef Py_ssize_t count = 0, length = 0, count_max = code.shape[0]
    cdef int32_t operation
    cdef Text text = Text(NULL, start, reply.shape[0])
    if not 0 <= start < reply.shape[0]:
        return -1
    text.data = &reply[0]
    with nogil:
        while text.end - text.offset >= HEADER_BYTES:
            operation = int32_at(text.data + text.offset)
            if text.data[text.offset + 4]:
                break
            text.offset += HEADER_BYTES
            if count == count_max:
                count = -1
                break
            code[count] = version[count] = 0
            if operation == SET_DATA and text.end - text.offset >= STAT_BYTES:
                version[count] = int32_at(text.data + text.offset + 32)
                text.offset += STAT_BYTES
            elif operation == ERROR and text.end - text.offset >= 4:
                code[count] = int32_at(text.data + text.offset)
                text.offset += 4
            elif not (operation == CHECK or operation == DELETE or operation == CREATE and take_length(&text, &length)):
                count = -1
                break
            count += 1
        else:
            count = -1
    return count


cdef inline int take_key(Text* text) noexcept nogil:
    """Skip a key and its colon. Return the key's bit, or 0 for an unknown key."""
    cdef Py_ssize_t length = begin_key(text)
    cdef int key = 0
    if length < 0:
        return 0
    if equals(text, length, b"leader"):
        key = LEADER
    elif equals(text, length, b"leader_epoch"):
        key = LEADER_EPOCH
    elif equals(text, length, b"controller_epoch"):
        key = CONTROLLER_EPOCH
    elif equals(text, length, b"isr"):
        key = ISR
    elif equals(text, length, b"version"):
        key = VERSION
    elif equals(text, length, b"leader_recovery_state"):
        key = RECOVERY
    return key if end_key(text, length) else 0


cdef inline Py_ssize_t take_list(Text* text, int32_t[::1] isr, Py_ssize_t first) noexcept nogil:
    """Read a list of distinct broker ids into ``isr`` from index ``first``. Return the end index, or -1."""
    cdef Py_ssize_t index = first
    if not take_byte(text, 91):
        return -1
    if take_byte(text, 93):
        return index
    while True:
        if index == isr.shape[0] or index - first == ISR_MAX or not take_int32(text, &isr[index]):
            return -1
        if isr[index] < 0 or contains(isr[index], isr, first, index):
            return -1
        index += 1
        if take_byte(text, 93):
            return index
        if not take_byte(text, 44):
            return -1


def parse_states(
    const uint8_t[::1] reply,        # IN   (bytes,)
    const int64_t[::1] data_offset,  # IN   (k,)  where each JSON begins
    const int32_t[::1] data_length,  # IN   (k,)  its bytes; none where not positive
    int32_t[::1] leader,             # OUT  (k,)  broker id or -1; undefined, as what follows, where not parsed
    int32_t[::1] leader_epoch,       # OUT  (k,)
    int32_t[::1] controller_epoch,   # OUT  (k,)
    uint8_t[::1] recovery,           # OUT  (k,)  1 while recovering
    int32_t[::1] isr_count,          # OUT  (k,)  0 where not parsed
    int32_t[::1] isr,                # OUT  (values,)  broker ids, row after row
    uint8_t[::1] parsed,             # OUT  (k,)  1 where the JSON is as Kafka writes it
):
    """Parse states that have each key once, no other keys, and numbers within int32. Return the number of ISR members.

    The strict decoder parses anything else: other keys, escapes, another version, or repeated members.
    """
    cdef Py_ssize_t i, end, index = 0
    cdef int32_t numbers[64]
    cdef int seen, key
    cdef Text text = Text(NULL, 0, 0)
    if reply.shape[0]:
        text.data = &reply[0]
    with nogil:
        for i in range(data_offset.shape[0]):
            parsed[i], isr_count[i], seen, end = 0, 0, 0, index
            if data_length[i] <= 0 or data_offset[i] < 0 or data_offset[i] + data_length[i] > reply.shape[0]:
                continue
            text.offset, text.end, numbers[RECOVERY] = data_offset[i], data_offset[i] + data_length[i], 0
            if not take_byte(&text, 123):
                continue
            while True:
                key = take_key(&text)
                if key == 0 or seen & key:
                    break
                seen |= key
                if key == ISR:
                    end = take_list(&text, isr, index)
                    if end < 0:
                        break
                elif not take_int32(&text, &numbers[key]):
                    break
                if take_byte(&text, 125):
                    parsed[i] = text.offset == text.end and seen & NECESSARY == NECESSARY and \
                        numbers[VERSION] == 1 and numbers[LEADER] >= -1 and 0 <= numbers[RECOVERY] <= 1 and \
                        numbers[LEADER_EPOCH] >= 0 and numbers[CONTROLLER_EPOCH] >= 0
                    break
                if not take_byte(&text, 44):
                    break
            if parsed[i]:
                leader[i], leader_epoch[i] = numbers[LEADER], numbers[LEADER_EPOCH]
                controller_epoch[i], recovery[i] = numbers[CONTROLLER_EPOCH], <uint8_t> numbers[RECOVERY]
                isr_count[i], index = <int32_t> (end - index), end
    return index
