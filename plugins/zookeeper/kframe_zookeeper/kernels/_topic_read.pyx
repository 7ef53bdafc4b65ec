"""Parse the JSON of many topics into columns.

The JSON is that of ``kafka.zk.TopicZNode`` (Kafka 3.9), with its keys and partitions in any order. The input is
untrusted. Every read is checked against the end of the response, every number against int32, and every OUT against its
length.

Otherwise the rules of ``kframe/_core.pyx`` apply. ``verification/reference/jute.py`` has a reference implementation
with the same names and signatures. The cost is linear in the bytes read.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kframe_zookeeper.kernels.json_bytes cimport Text, begin_key, contains, end_key, equals, take_byte, take_int32

cdef enum:
    # Bits of the keys in the JSON of a topic.
    PARTITIONS = 1
    TOPIC_ID = 2
    ADDING = 4
    REMOVING = 8
    VERSION = 16
    NECESSARY = 17

cdef enum:
    # Longer replica lists are left to the decoder: the search for repeated members takes quadratic time.
    REPLICAS_MAX = 64
    TOPIC_VERSION = 3
    # The decoder refuses larger znodes.
    ZNODE_BYTES_MAX = 4194304
    # Characters and bytes of a topic id. The last character has two bits only.
    ID_LENGTH = 22
    ID_BYTES = 16

cdef enum:
    # Rows of ``entries``. The first three describe the entries of an assignment: the partition, the index of its first
    # replica, and whether a replica is repeated. The last has the entry of each partition.
    NUMBER = 0
    BEGIN = 1
    HAS_DUPLICATES = 2
    ENTRY = 3


cdef inline int take_key(Text* text) noexcept nogil:
    """Skip a key and its colon. Return the key's bit, or 0 for an unknown key."""
    cdef Py_ssize_t length = begin_key(text)
    cdef int key = 0
    if length < 0:
        return 0
    if equals(text, length, b"partitions"):
        key = PARTITIONS
    elif equals(text, length, b"topic_id"):
        key = TOPIC_ID
    elif equals(text, length, b"adding_replicas"):
        key = ADDING
    elif equals(text, length, b"removing_replicas"):
        key = REMOVING
    elif equals(text, length, b"version"):
        key = VERSION
    return key if end_key(text, length) else 0


cdef inline int bits_of(uint8_t character) noexcept nogil:
    """The six bits of a character of URL-safe base64, or -1 for any other character."""
    if 65 <= character <= 90:
        return character - 65
    if 97 <= character <= 122:
        return character - 71
    if 48 <= character <= 57:
        return character + 4
    return 62 if character == 45 else 63 if character == 95 else -1


cdef inline bint take_id(Text* text, uint8_t[:, ::1] topic_id, Py_ssize_t topic) noexcept nogil:
    """Read a topic id. Return false for the all-zero id."""
    cdef Py_ssize_t i, index = 0
    cdef int bits, buffer = 0, buffered_bits = 0
    cdef uint8_t any_bit = 0
    if text.end - text.offset < ID_LENGTH + 2 or text.data[text.offset] != 34:
        return False
    for i in range(ID_LENGTH):
        bits = bits_of(text.data[text.offset + 1 + i])
        if bits < 0:
            return False
        buffer, buffered_bits = (buffer << 6 | bits) & 0x3FFF, buffered_bits + 6
        if buffered_bits >= 8:
            buffered_bits -= 8
            topic_id[topic, index] = <uint8_t> (buffer >> buffered_bits & 0xFF)
            any_bit |= topic_id[topic, index]
            index += 1
    text.offset += ID_LENGTH + 1
    return buffer & 15 == 0 and any_bit and text.data[text.offset] == 34 and take_byte(text, 34)


cdef inline Py_ssize_t take_replicas(
    Text* text, int32_t[::1] values, Py_ssize_t first, int32_t* has_duplicates
) noexcept nogil:
    """Read a non-empty list of brokers into ``values`` from index ``first``, each broker once. Return the end index."""
    cdef Py_ssize_t index = first, stored = 0
    has_duplicates[0] = 0
    if not take_byte(text, 91):
        return -1
    while True:
        if index == values.shape[0] or stored == REPLICAS_MAX or not take_int32(text, &values[index]):
            return -1
        stored += 1
        if contains(values[index], values, first, index):
            has_duplicates[0] = 1
        else:
            index += 1
        if take_byte(text, 93):
            return index
        if not take_byte(text, 44):
            return -1


cdef inline Py_ssize_t take_partitions(Text* text, int32_t[:, ::1] entries, int32_t[::1] values) noexcept nogil:
    """Read an assignment into ``entries``. Return the number of its entries."""
    cdef Py_ssize_t count = 0, index = 0
    if not take_byte(text, 123):
        return -1
    if take_byte(text, 125):
        return 0
    while True:
        # One more column is needed for the end of the last entry.
        if count + 1 >= entries.shape[1] or begin_key(text) <= 0 or text.data[text.offset] == 45:
            return -1
        if not take_int32(text, &entries[NUMBER, count]) or text.offset == text.end or text.data[text.offset] != 34:
            return -1
        if not end_key(text, 0):
            return -1
        entries[BEGIN, count] = <int32_t> index
        index = take_replicas(text, values, index, &entries[HAS_DUPLICATES, count])
        if index < 0:
            return -1
        count += 1
        entries[BEGIN, count] = <int32_t> index
        if take_byte(text, 125):
            return count
        if not take_byte(text, 44):
            return -1


cdef inline bint order(int32_t[:, ::1] entries, Py_ssize_t count) noexcept nogil:
    """Find the entry of each partition. Return false unless the partitions are 0, 1, 2 and so on, each once."""
    cdef Py_ssize_t i
    cdef int32_t number
    for i in range(count):
        entries[ENTRY, i] = -1
    for i in range(count):
        number = entries[NUMBER, i]
        if number >= count or entries[ENTRY, number] >= 0:
            return False
        entries[ENTRY, number] = <int32_t> i
    return True


cdef inline Py_ssize_t take_topic(
    Text* text, uint8_t[:, ::1] topic_id, Py_ssize_t topic, int32_t[:, ::1] entries, int32_t[::1] values
) noexcept nogil:
    """Read a topic, and sort its entries by partition. Return the number of partitions, or -1."""
    cdef Py_ssize_t i, count = 0
    cdef int32_t version = 0
    cdef int key, seen = 0
    for i in range(ID_BYTES):
        topic_id[topic, i] = 0
    if not take_byte(text, 123):
        return -1
    while True:
        key = take_key(text)
        if key == 0 or seen & key:
            return -1
        seen |= key
        if key == PARTITIONS:
            count = take_partitions(text, entries, values)
            if count < 0:
                return -1
        elif key == TOPIC_ID:
            if not take_id(text, topic_id, topic):
                return -1
        elif key == VERSION:
            if not take_int32(text, &version):
                return -1
        elif not (take_byte(text, 123) and take_byte(text, 125)):
            return -1
        if take_byte(text, 125):
            break
        if not take_byte(text, 44):
            return -1
    if text.offset != text.end or seen & NECESSARY != NECESSARY or version != TOPIC_VERSION:
        return -1
    if not order(entries, count):
        return -1
    return count


def parse_topics(
    const uint8_t[::1] reply,        # IN   (bytes,)
    const int64_t[::1] data_offset,  # IN   (k,)  where each JSON begins
    const int32_t[::1] data_length,  # IN   (k,)  its bytes; none where not positive
    int32_t[:, ::1] entries,         # SCRATCH  (4, p + 1), for topics of up to ``p`` partitions
    int32_t[::1] values,             # SCRATCH  (v,), for topics of up to ``v`` replicas
    int32_t[::1] partitions,         # OUT  (k,)  number of partitions; 0 where not parsed
    uint8_t[:, ::1] topic_id,        # OUT  (k, 16)  zeros where the topic has none; undefined where not parsed
    int32_t[::1] replica_count,      # OUT  (rows,)  topic after topic, in the order of partitions
    uint8_t[::1] duplicates,         # OUT  (rows,)  1 where a broker is listed twice, of which the first entry counts
    int32_t[::1] replicas,           # OUT  (values,)  broker ids, row after row, each once in a row
    uint8_t[::1] parsed,             # OUT  (k,)  1 where the JSON is as Kafka writes it and nothing is being moved
):
    """Parse topics that have each key once, no other keys, and numbers within int32. Return the number of replicas.

    The strict decoder parses anything else: other keys, escapes, another version, or a reassignment.
    """
    cdef Py_ssize_t i, number, source, entry, count, row = 0, index = 0
    cdef Text text = Text(NULL, 0, 0)
    if reply.shape[0]:
        text.data = &reply[0]
    with nogil:
        for i in range(data_offset.shape[0]):
            parsed[i], partitions[i] = 0, 0
            if not 0 < data_length[i] <= ZNODE_BYTES_MAX:
                continue
            if data_offset[i] < 0 or data_offset[i] + data_length[i] > reply.shape[0]:
                continue
            text.offset, text.end = data_offset[i], data_offset[i] + data_length[i]
            count = take_topic(&text, topic_id, i, entries, values)
            if count < 0 or count > min(replica_count.shape[0], duplicates.shape[0]) - row:
                continue
            if count and entries[BEGIN, count] > replicas.shape[0] - index:
                continue
            for number in range(count):
                entry = entries[ENTRY, number]
                replica_count[row], duplicates[row] = entries[BEGIN, entry + 1] - entries[BEGIN, entry], \
                    <uint8_t> entries[HAS_DUPLICATES, entry]
                for source in range(entries[BEGIN, entry], entries[BEGIN, entry + 1]):
                    replicas[index] = values[source]
                    index += 1
                row += 1
            parsed[i], partitions[i] = 1, <int32_t> count
    return index
