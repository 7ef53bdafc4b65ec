"""The kernel that bends bytes for the fuzz: messages with something in them changed, the same for a seed everywhere.

Case ``number`` of a ``seed`` depends on nothing else, so each can be made again alone. The numbers drawn are those of
splitmix64 (Steele, Lea, Flood 2014). The house rules are those of ``_core.pyx``; the twin is ``_naive_bend.py``.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memmove

cdef enum:
    # What is done to a message; a draw of 16 ways chooses one, so that some are chosen more often.
    DIGIT = 2        # another digit for one that stands there
    BYTE = 3         # any byte for another
    BIT = 4          # one bit turned over
    EDGE = 5         # a byte that numbers and lengths begin or end at
    CUT = 7          # some bytes left out
    DOUBLE = 8       # some bytes twice
    PUT_IN = 10      # a piece put in
    PUT_OVER = 12    # a piece put over some bytes
    END = 13         # all behind it left out
    SPLICE = 14      # what follows taken from another message
    LENGTH = 15      # a number of two or four bytes, such as lengths are
    WAYS = 16

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
    Py_ssize_t most
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
    Message* message, Py_ssize_t at, Py_ssize_t removed, const uint8_t* piece, Py_ssize_t length
) noexcept nogil:
    """Put ``piece`` in the place of ``removed`` bytes; not if the message would be too long."""
    if removed > message.length - at:
        removed = message.length - at
    if message.length - removed + length > message.most:
        return
    memmove(message.data + at + length, message.data + at + removed, message.length - at - removed)
    memcpy(message.data + at, piece, length)
    message.length += length - removed


cdef inline void bend_byte(Message* message, Py_ssize_t way, Py_ssize_t at) noexcept nogil:
    """Change one byte, from ``at`` on."""
    cdef Py_ssize_t digit = at
    if way <= DIGIT:
        while digit < message.length and not 48 <= message.data[digit] <= 57:
            digit += 1
        if digit < message.length:
            message.data[digit] = <uint8_t> (48 + draw(message, 10))
            return
    if way <= BYTE:
        message.data[at] = <uint8_t> draw(message, 256)
    elif way == BIT:
        message.data[at] ^= <uint8_t> (1 << draw(message, 8))
    else:
        message.data[at] = kframe_edges[draw(message, 8)]


cdef inline void bend_length(Message* message, Py_ssize_t at) noexcept nogil:
    """Write a number over two or four bytes, most significant first."""
    cdef uint64_t value = <uint64_t> kframe_lengths[draw(message, 8)]
    cdef Py_ssize_t size = 2 + 2 * draw(message, 2)
    cdef Py_ssize_t byte
    for byte in range(size):
        if at + byte < message.length:
            message.data[at + byte] = <uint8_t> (value >> (8 * (size - 1 - byte)))


cdef inline void bend_once(
    Message* message, const uint8_t[::1] corpus, const int64_t[::1] corpus_at, const uint8_t[::1] pieces,
    const int64_t[::1] piece_at,
) noexcept nogil:
    cdef Py_ssize_t way = draw(message, WAYS)
    cdef Py_ssize_t at = draw(message, message.length + 1)
    cdef Py_ssize_t size, other, start
    if at == message.length and (way <= EDGE or way == LENGTH):
        return
    if way <= EDGE:
        bend_byte(message, way, at)
    elif way <= CUT:
        put(message, at, 1 + draw(message, 8), message.data, 0)
    elif way == DOUBLE:
        size = min(1 + draw(message, 16), message.length - at)
        put(message, at + size, 0, message.data + at, size)
    elif way <= PUT_OVER:
        other = draw(message, piece_at.shape[0] - 1)
        size = draw(message, 13) if way > PUT_IN else 0
        put(message, at, size, &pieces[piece_at[other]], piece_at[other + 1] - piece_at[other])
    elif way == END:
        message.length = at
    elif way == SPLICE:
        other = draw(message, corpus_at.shape[0] - 1)
        start = corpus_at[other] + draw(message, corpus_at[other + 1] - corpus_at[other])
        put(message, at, message.length - at, &corpus[start], corpus_at[other + 1] - start)
    else:
        bend_length(message, at)


def bend(
    const uint8_t[::1] corpus,      # IN   (bytes,)  messages, one behind the other, none of them empty
    const int64_t[::1] corpus_at,   # IN   (c+1,)    where each begins; c is at least 1
    const uint8_t[::1] pieces,      # IN   (bytes,)  what is put into messages, likewise
    const int64_t[::1] piece_at,    # IN   (p+1,)
    uint64_t seed,                  # IN
    int64_t first,                  # IN             number of the first case
    Py_ssize_t most,                # IN             bytes of a case at most; no message of the corpus has more
    int64_t[::1] case_at,           # OUT  (k+1,)    where each case begins
    uint8_t[::1] out,               # OUT            the cases; there is room for the next while ``most`` bytes are left
):
    """Make cases: number ``i`` is message ``i % c`` of the corpus, bent one to three times; return how many had room.

    Cost is linear in the bytes of the cases and of the corpus' messages that they are made of.
    """
    cdef Py_ssize_t i = 0, base, times, start = 0
    cdef Py_ssize_t count = corpus_at.shape[0] - 1
    cdef Message message
    with nogil:
        while i < case_at.shape[0] - 1 and start + most <= out.shape[0]:
            base = (first + i) % count
            message.data, message.most = &out[start], most
            message.length = corpus_at[base + 1] - corpus_at[base]
            message.state = seed * <uint64_t> 0xD1342543DE82EF95 + <uint64_t> (first + i)
            memcpy(message.data, &corpus[corpus_at[base]], message.length)
            times = 1 + draw(&message, 3)
            while times > 0:
                bend_once(&message, corpus, corpus_at, pieces, piece_at)
                times -= 1
            case_at[i] = start
            start += message.length
            i += 1
        case_at[i] = start
    return i
