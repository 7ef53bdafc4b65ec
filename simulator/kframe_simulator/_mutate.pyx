"""The kernel that mutates messages for the fuzz tests, reproducible from a seed on every machine.

Case ``number`` of a ``seed`` depends on nothing else, so any case can be made again alone. Random numbers are those of
splitmix64 (Steele, Lea, Flood 2014). Conventions: ``kframe/_core.pyx``. Twin: ``fuzz/reference.py``.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memmove

cdef enum:
    # Mutations; one of KINDS numbers is drawn, so that some mutations are more frequent.
    DIGIT = 2        # replace a digit by another
    BYTE = 3         # replace a byte by any other
    BIT = 4          # flip a bit
    EDGE = 5         # replace a byte by a boundary value
    CUT = 7          # remove some bytes
    DOUBLE = 8       # repeat some bytes
    PUT_IN = 10      # insert a piece
    PUT_OVER = 12    # overwrite some bytes by a piece
    END = 13         # truncate
    SPLICE = 14      # continue with another message
    LENGTH = 15      # overwrite two or four bytes by a boundary value of a length
    KINDS = 16

cdef extern from *:
    """
    static const unsigned char kframe_edges[8] = {0, 1, 2, 0x7f, 0x80, 0x81, 0xfe, 0xff};
    static const int kframe_lengths[8] = {-1, 0, 1, 0x7fff, 0x10000, 0x7fffffff, -2147483647 - 1, 0x01010101};
    """
    const uint8_t kframe_edges[8]
    const int32_t kframe_lengths[8]

cdef struct Message:
    uint8_t* data
    Py_ssize_t length
    Py_ssize_t max_length
    uint64_t state


cdef inline Py_ssize_t draw(Message* message, Py_ssize_t below) noexcept nogil:
    """A number from 0 to ``below`` - 1."""
    cdef uint64_t mixed
    message.state += <uint64_t> 0x9E3779B97F4A7C15
    mixed = message.state
    mixed = (mixed ^ (mixed >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    mixed = (mixed ^ (mixed >> 27)) * <uint64_t> 0x94D049BB133111EB
    mixed ^= mixed >> 31
    return <Py_ssize_t> (mixed % <uint64_t> below)


cdef inline void put(
    Message* message, Py_ssize_t offset, Py_ssize_t removed, const uint8_t* piece, Py_ssize_t length
) noexcept nogil:
    """Replace ``removed`` bytes by ``piece``, unless the message would be too long."""
    if removed > message.length - offset:
        removed = message.length - offset
    if message.length - removed + length > message.max_length:
        return
    memmove(message.data + offset + length, message.data + offset + removed, message.length - offset - removed)
    memcpy(message.data + offset, piece, length)
    message.length += length - removed


cdef inline void mutate_byte(Message* message, Py_ssize_t kind, Py_ssize_t offset) noexcept nogil:
    """Change one byte at ``offset`` or after it."""
    cdef Py_ssize_t digit = offset
    if kind <= DIGIT:
        while digit < message.length and not 48 <= message.data[digit] <= 57:
            digit += 1
        if digit < message.length:
            message.data[digit] = <uint8_t> (48 + draw(message, 10))
            return
    if kind <= BYTE:
        message.data[offset] = <uint8_t> draw(message, 256)
    elif kind == BIT:
        message.data[offset] ^= <uint8_t> (1 << draw(message, 8))
    else:
        message.data[offset] = kframe_edges[draw(message, 8)]


cdef inline void mutate_length(Message* message, Py_ssize_t offset) noexcept nogil:
    """Overwrite two or four bytes by a number, most significant byte first."""
    cdef uint64_t value = <uint64_t> kframe_lengths[draw(message, 8)]
    cdef Py_ssize_t size = 2 + 2 * draw(message, 2)
    cdef Py_ssize_t byte
    for byte in range(size):
        if offset + byte < message.length:
            message.data[offset + byte] = <uint8_t> (value >> (8 * (size - 1 - byte)))


cdef inline void mutate_once(
    Message* message, const uint8_t[::1] corpus, const int64_t[::1] corpus_offsets, const uint8_t[::1] pieces,
    const int64_t[::1] piece_offsets,
) noexcept nogil:
    cdef Py_ssize_t kind = draw(message, KINDS)
    cdef Py_ssize_t offset = draw(message, message.length + 1)
    cdef Py_ssize_t size, other, start
    if offset == message.length and (kind <= EDGE or kind == LENGTH):
        return
    if kind <= EDGE:
        mutate_byte(message, kind, offset)
    elif kind <= CUT:
        put(message, offset, 1 + draw(message, 8), message.data, 0)
    elif kind == DOUBLE:
        size = min(1 + draw(message, 16), message.length - offset)
        put(message, offset + size, 0, message.data + offset, size)
    elif kind <= PUT_OVER:
        other = draw(message, piece_offsets.shape[0] - 1)
        size = draw(message, 13) if kind > PUT_IN else 0
        put(message, offset, size, &pieces[piece_offsets[other]], piece_offsets[other + 1] - piece_offsets[other])
    elif kind == END:
        message.length = offset
    elif kind == SPLICE:
        other = draw(message, corpus_offsets.shape[0] - 1)
        start = corpus_offsets[other] + draw(message, corpus_offsets[other + 1] - corpus_offsets[other])
        put(message, offset, message.length - offset, &corpus[start], corpus_offsets[other + 1] - start)
    else:
        mutate_length(message, offset)


def mutate(
    const uint8_t[::1] corpus,            # IN   (bytes,)  messages one after another, none empty
    const int64_t[::1] corpus_offsets,    # IN   (c+1,)    where each begins; c is at least 1
    const uint8_t[::1] pieces,            # IN   (bytes,)  pieces to insert, likewise
    const int64_t[::1] piece_offsets,    # IN   (p+1,)
    uint64_t seed,                  # IN
    int64_t first,                        # IN             number of the first case
    Py_ssize_t max_length,                # IN             bytes of a case at most; no message of the corpus is longer
    int64_t[::1] case_offsets,            # OUT  (k+1,)    where each case begins
    uint8_t[::1] out,                     # OUT            the cases, while ``max_length`` bytes are left
):
    """Make cases: number ``i`` is message ``i % c`` of the corpus, mutated one to three times; return how many.

    Cost is linear in the bytes of the cases and their messages.
    """
    cdef Py_ssize_t i = 0, base, times, start = 0
    cdef Py_ssize_t count = corpus_offsets.shape[0] - 1
    cdef Message message
    with nogil:
        while i < case_offsets.shape[0] - 1 and start + max_length <= out.shape[0]:
            base = (first + i) % count
            message.data, message.max_length = &out[start], max_length
            message.length = corpus_offsets[base + 1] - corpus_offsets[base]
            message.state = seed * <uint64_t> 0xD1342543DE82EF95 + <uint64_t> (first + i)
            memcpy(message.data, &corpus[corpus_offsets[base]], message.length)
            times = 1 + draw(&message, 3)
            while times > 0:
                mutate_once(&message, corpus, corpus_offsets, pieces, piece_offsets)
                times -= 1
            case_offsets[i] = start
            start += message.length
            i += 1
        case_offsets[i] = start
    return i
