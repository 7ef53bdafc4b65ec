"""Rows as most are, counted by whom they name.

A row is *healthy* where all its replicas are registered, all are in the ISR and nobody else is, one of them leads, and
at least one must be in sync. What becomes of it hangs only on its *kind*, on who leads, and on who follows: nobody
outside the ISR is left who might be elected uncleanly. So such rows are counted by these, one count a row or two, and
``whatif/sweep_healthy.py`` works out what that comes to, once. Tables are small and stay in the cache, and rows of one
topic are mostly alike: these are looked at a block at a time.

Arguments that recur: ``rack_bit`` (b,) a bit for the rack of a broker, none where it has none, and the bit GONE where
it is not registered. Racks may share a bit.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t

from kframe.blocks cimport even_width, in_order
from kframe.column cimport broker_t
from kframe.fate cimport NO_LEADER, NO_STATE
from kframe.prefetch cimport KFRAME_PREFETCH
from kframe.scan cimport contains

cdef enum:
    TOGETHER = 32   # rows that are looked at together: a block
    AHEAD = 16      # how many blocks ahead to ask for memory
    SPARE = 3       # so many in sync beyond those needed that two failures do nothing but to the leader
    GONE = 62       # the place of a bit

cdef enum Racks:
    APART   # no two replicas of a healthy row are in one rack
    SHARED  # some may be
    ODD     # the row is not healthy


cdef inline Py_ssize_t kind_of(Py_ssize_t replicas, int32_t least) noexcept nogil:
    """0: alone; 1, 2: of two, with none or one to spare; 3 to 6: of more, with none, one, two or more to spare."""
    cdef Py_ssize_t size = min(replicas, 3)
    return size * (size - 1) // 2 + min(replicas - least, SPARE)


cdef inline Py_ssize_t end_of(Py_ssize_t row, Py_ssize_t last, const int32_t[::1] topic) noexcept nogil:
    """The end of the rows from ``row`` on that are of one topic."""
    cdef Py_ssize_t stop = row + 1
    while stop < last and topic[stop] == topic[row]:
        stop += 1
    return stop


cdef inline void ask_ahead(
    Py_ssize_t row, Py_ssize_t start, Py_ssize_t slots, const int32_t[::1] topic, const int32_t[::1] partition_epoch,
    const int32_t[::1] slot_start, const int16_t[::1] replica_count, const int16_t[::1] isr_count,
    const broker_t[::1] replica, const broker_t[::1] isr,
) noexcept nogil:
    """Ask for what is read AHEAD blocks further on, if those are like this one: the processor does not look beyond a
    page by itself, and of so many columns one ends in every few blocks."""
    cdef Py_ssize_t k
    row += AHEAD * TOGETHER
    start += AHEAD * slots
    if row + TOGETHER > topic.shape[0] or start + slots > replica.shape[0]:
        return
    for k in range(0, TOGETHER, 16):  # 64 bytes are a line
        KFRAME_PREFETCH(&topic[row + k])
        KFRAME_PREFETCH(&partition_epoch[row + k])
        KFRAME_PREFETCH(&slot_start[row + k])
    KFRAME_PREFETCH(&replica_count[row])
    KFRAME_PREFETCH(&isr_count[row])
    for k in range(start, start + slots, 32):
        KFRAME_PREFETCH(&replica[k])
        KFRAME_PREFETCH(&isr[k])


cdef inline bint uniform(
    Py_ssize_t row, const int32_t[::1] topic, const int32_t[::1] partition_epoch, const int32_t[::1] slot_start,
    const int16_t[::1] replica_count, const int16_t[::1] isr_count, const broker_t[::1] replica,
    const broker_t[::1] isr,
) noexcept nogil:
    """Whether the rows TOGETHER from ``row`` on are of one topic, follow in the slots, and each has a state and as many
    replicas as the first, all of them in the ISR, in their order."""
    cdef Py_ssize_t last = row + TOGETHER - 1, width
    cdef int32_t off = 0
    cdef int k
    if topic[last] != topic[row]:
        return False
    width = even_width(row, TOGETHER, slot_start, replica_count)
    if width == 0:
        return False
    ask_ahead(row, slot_start[row], TOGETHER * width, topic, partition_epoch, slot_start, replica_count, isr_count,
              replica, isr)
    cdef const int32_t *topics = &topic[last] - TOGETHER + 1
    cdef const int32_t *epochs = &partition_epoch[last] - TOGETHER + 1
    for k in range(TOGETHER):
        off |= (topics[k] ^ topics[0]) | -<int32_t>(epochs[k] == NO_STATE)
    return off == 0 and in_order(row, TOGETHER, width, slot_start, isr_count, replica, isr)


cdef inline bint all_in_sync(
    Py_ssize_t start, Py_ssize_t replicas, const broker_t[::1] replica, const broker_t[::1] isr
) noexcept nogil:
    """Whether as many members of the ISR as there are replicas are all of them. In what order three of them stand is
    hard to guess, and no branch hangs on it."""
    cdef Py_ssize_t j, k
    cdef bint found, everyone = True
    if replicas == 3:
        for k in range(start, start + 3):
            found = False
            for j in range(start, start + 3):
                found |= replica[j] == isr[k]
            everyone &= found
        return everyone
    for k in range(start, start + replicas):
        if isr[k] != replica[k] and not contains(replica, start, replicas, isr[k]):
            return False
    return True


cdef inline int32_t follower(
    int32_t leader, Py_ssize_t start, Py_ssize_t replicas, const broker_t[::1] replica
) noexcept nogil:
    """Who leads a healthy row once its leader fails; the leader itself where it is alone. No branch hangs on who leads,
    here and below."""
    return replica[start + (replicas > 1) * (replica[start] == leader)]


cdef inline int32_t third(int32_t leader, Py_ssize_t start, const broker_t[::1] replica) noexcept nogil:
    """Who leads a healthy row of three replicas and more once both its leader and who follows fail."""
    return replica[start + 1 + ((replica[start] == leader) | (replica[start + 1] == leader))]


cdef inline Racks racks_of(
    int32_t leader, Py_ssize_t start, Py_ssize_t replicas, const broker_t[::1] replica, const int64_t[::1] rack_bit
) noexcept nogil:
    """What is left to know of a row whose replicas are all in sync: who leads, who is gone, and their racks."""
    cdef int64_t bits, seen = 0, twice = 0, led = 0
    cdef Py_ssize_t k
    for k in range(start, start + replicas):
        bits = rack_bit[replica[k]]
        twice |= seen & bits
        seen |= bits
        led |= <int64_t>(replica[k] == leader) << GONE
    if (led & ~seen) == 0:
        return ODD
    return SHARED if twice else APART


cdef inline Racks count_healthy(
    Py_ssize_t kind, int32_t leader, Py_ssize_t start, Py_ssize_t replicas, const broker_t[::1] replica,
    const int64_t[::1] rack_bit, int32_t[:, :, ::1] follows, int32_t[:, ::1] further,
) noexcept nogil:
    """Count a row whose replicas are all in sync by who leads and who follows, and by each further replica, unless it
    is ODD."""
    cdef Py_ssize_t k
    cdef Racks found = racks_of(leader, start, replicas, replica, rack_bit)
    if found != ODD:
        follows[kind, leader, follower(leader, start, replicas, replica)] += 1
        # Who leads from the third place on leaves the second one to be counted.
        for k in range(2, replicas):
            further[kind, replica[start + k - (k - 1) * (replica[start + k] == leader)]] += 1
    return found


cdef inline Racks racks_of_threes(
    Py_ssize_t row, Py_ssize_t start, const broker_t[::1] leader, const broker_t[::1] replica,
    const int64_t[::1] rack_bit
) noexcept nogil:
    """The same of rows of three that are alike, all together; ODD as well where one is not led by its first replica."""
    cdef int64_t one, other, last, seen = 0, twice = 0
    cdef int32_t off = 0
    cdef Py_ssize_t k, slot
    for k in range(TOGETHER):
        slot = start + 3 * k
        off |= leader[row + k] ^ replica[slot]
        one, other, last = rack_bit[replica[slot]], rack_bit[replica[slot + 1]], rack_bit[replica[slot + 2]]
        twice |= (one & other) | ((one | other) & last)
        seen |= one | other | last
    if off or seen >> GONE:
        return ODD
    return SHARED if twice else APART


cdef inline void count_threes(
    Py_ssize_t kind, Py_ssize_t start, const broker_t[::1] replica, int32_t[:, :, ::1] follows,
    int32_t[:, ::1] further,
) noexcept nogil:
    """Count rows of three that are alike, healthy, and led by their first replicas."""
    cdef Py_ssize_t slot
    for slot in range(start, start + 3 * TOGETHER, 3):
        follows[kind, replica[slot], replica[slot + 1]] += 1
        further[kind, replica[slot + 2]] += 1


cdef inline uint32_t count_alike(
    Py_ssize_t kind, Py_ssize_t row, Py_ssize_t start, Py_ssize_t replicas, const broker_t[::1] leader,
    const broker_t[::1] replica, const int64_t[::1] rack_bit, int32_t[:, :, ::1] follows, int32_t[:, ::1] further,
    int *shared, int *sharing,
) noexcept nogil:
    """Count the healthy ones of rows that are alike; return a bit for each other one, and list those that are SHARED:
    which they are may be hard to guess."""
    cdef uint32_t odd = 0
    cdef int k, found, count = 0
    for k in range(TOGETHER):
        found = count_healthy(kind, leader[row + k], start + replicas * k, replicas, replica, rack_bit, follows,
                              further)
        odd |= <uint32_t>(found == ODD) << k
        shared[count] = k
        count += found == SHARED
    sharing[0] = count
    return odd


cdef inline uint32_t tally_alike(
    Py_ssize_t row, Py_ssize_t start, Py_ssize_t replicas, int32_t least, const broker_t[::1] leader,
    const broker_t[::1] replica, const int32_t[::1] rack, const int64_t[::1] rack_bit, int32_t[:, ::1] racks,
    int32_t[:, ::1] rack_leads, int32_t[:, :, ::1] follows, int32_t[:, ::1] further, int32_t[:, ::1] doubled,
) noexcept nogil:
    """Count the healthy ones of rows that are alike; return a bit for each other one."""
    cdef Py_ssize_t kind
    cdef uint32_t odd = 0
    cdef int k, sharing = 0
    cdef int[TOGETHER] shared
    cdef Racks found = racks_of_threes(row, start, leader, replica, rack_bit) if replicas == 3 else ODD
    least = min(least, <int32_t>replicas)
    kind = kind_of(replicas, least)
    if found == ODD:
        if replicas == 3:  # the compiler shall know the usual number
            odd = count_alike(kind, row, start, 3, leader, replica, rack_bit, follows, further, shared, &sharing)
        else:
            odd = count_alike(kind, row, start, replicas, leader, replica, rack_bit, follows, further, shared, &sharing)
        for k in range(sharing):
            tally_shared(kind, leader[row + shared[k]], start + replicas * shared[k], replicas, least, replica, rack,
                         racks, rack_leads, doubled)
        return odd
    count_threes(kind, start, replica, follows, further)
    if found == SHARED:
        for k in range(TOGETHER):
            tally_shared(kind, replica[start + 3 * k], start + 3 * k, 3, least, replica, rack, racks, rack_leads,
                         doubled)
    return 0


cdef inline uint32_t tally_each(
    Py_ssize_t row, Py_ssize_t stop, int32_t min_insync, const broker_t[::1] leader,
    const int32_t[::1] partition_epoch, const int32_t[::1] slot_start, const int16_t[::1] replica_count,
    const int16_t[::1] isr_count, const broker_t[::1] replica, const broker_t[::1] isr, const int32_t[::1] rack,
    const int64_t[::1] rack_bit, int32_t[:, ::1] racks, int32_t[:, ::1] rack_leads, int32_t[:, :, ::1] follows,
    int32_t[:, ::1] further, int32_t[:, ::1] doubled,
) noexcept nogil:
    """Count the healthy ones of rows of one topic; return a bit for each other one."""
    cdef Py_ssize_t k, start, replicas, kind
    cdef int32_t least
    cdef uint32_t odd = 0
    cdef Racks found
    for k in range(stop - row):
        start, replicas, found = slot_start[row + k], replica_count[row + k], ODD
        least = min(min_insync, <int32_t>replicas)
        if isr_count[row + k] == replicas and partition_epoch[row + k] != NO_STATE and least > 0 and all_in_sync(
                start, replicas, replica, isr):
            kind = kind_of(replicas, least)
            found = count_healthy(kind, leader[row + k], start, replicas, replica, rack_bit, follows, further)
            if found == SHARED:
                tally_shared(kind, leader[row + k], start, replicas, least, replica, rack, racks, rack_leads, doubled)
        odd |= <uint32_t>(found == ODD) << k
    return odd


cdef inline void tally_shared(
    Py_ssize_t kind, int32_t leader, Py_ssize_t start, Py_ssize_t replicas, int32_t least,
    const broker_t[::1] replica, const int32_t[::1] rack, int32_t[:, ::1] racks, int32_t[:, ::1] rack_leads,
    int32_t[:, ::1] doubled,
) noexcept nogil:
    """Count a healthy row by the racks that have two of its replicas, and who leads when all in its leader's rack fail
    where who follows is among them. Of three replicas mostly two are in a rack, or none: no branch hangs on which."""
    cdef int32_t second = follower(leader, start, replicas, replica), last, here, other, beyond, behind
    if replicas == 3:
        last = third(leader, start, replica)
        here, other, beyond = rack[leader], rack[second], rack[last]
        if (here | other | beyond) >= 0 and (here ^ other) | (here ^ beyond):
            behind = other == beyond
            doubled[kind, leader + behind * (second - leader)] += behind | (here == other) | (here == beyond)
            rack_leads[here, last] += here == other
            return
    tally_racks_of(kind, leader, start, replicas, least, replica, rack, racks, rack_leads, doubled)


cdef inline void tally_racks_of(
    Py_ssize_t kind, int32_t leader, Py_ssize_t start, Py_ssize_t replicas, int32_t least,
    const broker_t[::1] replica, const int32_t[::1] rack, int32_t[:, ::1] racks, int32_t[:, ::1] rack_leads,
    int32_t[:, ::1] doubled,
) noexcept nogil:
    """The same for any healthy row. Of racks that have more of its replicas, what their failure adds to the sum of
    those of their brokers is counted."""
    cdef Py_ssize_t j, k, left
    cdef int32_t here, after, failed, led, at = replicas == least
    cdef int32_t second = follower(leader, start, replicas, replica)
    for k in range(start, start + replicas):
        here = rack[replica[k]]
        if here < 0 or in_rack(here, start, k, replica, rack) < k:
            continue
        failed, led, after = 0, 0, NO_LEADER
        for j in range(start + replicas - 1, start - 1, -1):
            if rack[replica[j]] == here:
                failed += 1
                led |= replica[j] == leader
            else:
                after = replica[j]
        if led and rack[second] == here and after >= 0 and replicas > 1:
            rack_leads[here, after] += 1
        if failed == 2:
            doubled[kind, leader if led else replica[k]] += 1
        elif failed > 2:
            left = replicas - failed
            racks[here, 0] += left == 0
            racks[here, 1] += left == 0
            racks[here, 2] += (left < least) - failed * at
            racks[here, 3] += (left < least) - failed * at
            racks[here, 4] += (left == least) - at - failed * ((replicas - 1 == least) - at)
            racks[here, 7] -= led and left == 0


cdef inline Py_ssize_t in_rack(
    int32_t here, Py_ssize_t start, Py_ssize_t stop, const broker_t[::1] replica, const int32_t[::1] rack
) noexcept nogil:
    """The first slot from ``start`` on whose replica is in a rack; ``stop`` if there is none before."""
    while start < stop and rack[replica[start]] != here:
        start += 1
    return start
